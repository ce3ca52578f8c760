"""The API as its callers meet it, on the real log and the real tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from streams.api.server import make_app
from streams.envelope.model import Root
from streams.settings import Settings
from tests.apis import PLAYBOOK, SCOPE, Stand, open_stand
from tests.logs import root_events
from tests.projections import Story

pytestmark = pytest.mark.stack
Client = TestClient[Any, Any]


@pytest.fixture(scope="module")
async def stand(database: Settings) -> AsyncIterator[Stand]:
    async with open_stand(database) as opened:
        await opened.runtime.catalog.register(SCOPE, PLAYBOOK)
        yield opened


@pytest.fixture(scope="module")
async def client(stand: Stand) -> AsyncIterator[Client]:
    async with TestClient(TestServer(make_app(stand.runtime))) as opened:
        yield opened


async def post(client: Client, path: str, body: Any = None, **kw: Any) -> tuple[int, Any]:
    async with client.post(path, json=body, **kw) as answer:
        return answer.status, await answer.json(content_type=None)


async def get(client: Client, path: str, **kw: Any) -> tuple[int, Any]:
    async with client.get(path, **kw) as answer:
        return answer.status, await answer.json(content_type=None)


async def begun(stand: Stand, *, frames: int = 2) -> Story:
    """An execution whose stage has frames that wait, projected."""
    story = Story(stand.log.ids.take(100)[0])
    first = [story.began(), story.entered(), story.loop_started(), story.opened()]
    dispatched = [story.dispatched(number) for number in range(frames)]
    await stand.log.store.append([*first, *dispatched, story.issued(pool=f"p{story.root.id}")])
    await stand.project()
    return story


# ---------------------------------------------------------------- starting


async def test_a_start_is_an_execution_in_the_log(client: Client, stand: Stand) -> None:
    body = {"path": "examples/load", "workload": {"id": "12345"}}
    status, made = await post(client, "/api/executions", body)

    assert (status, made["is_new"]) == (201, True)
    (event,) = await root_events(stand.log.store, int(made["execution_id"]))
    entry = await stand.runtime.catalog.find(SCOPE, "examples/load")
    assert (event.type, event.catalog_id) == ("playbook.initialized", entry.catalog_id)
    assert event.meta == {"path": "examples/load", "version": 1}
    assert event.context == {"workload": {"id": "12345"}}


async def test_one_key_is_one_execution_however_often_and_at_once_it_is_asked_for(
    client: Client,
) -> None:
    body = {"path": "examples/load", "key": "order-1"}
    answers = await asyncio.gather(*(post(client, "/api/executions", body) for _ in range(5)))

    assert len({made["execution_id"] for _, made in answers}) == 1
    assert sorted(status for status, _ in answers) == [200, 200, 200, 200, 201]
    header = {"Idempotency-Key": "order-1"}
    status, again = await post(client, "/api/executions", {"path": "examples/load"}, headers=header)
    assert (status, again["execution_id"]) == (200, answers[0][1]["execution_id"])


async def test_a_large_workload_is_stored_as_a_payload(client: Client, stand: Stand) -> None:
    body = {"path": "examples/load", "workload": {"text": "x" * 100_000}}
    _, made = await post(client, "/api/executions", body)

    (event,) = await root_events(stand.log.store, int(made["execution_id"]))
    assert event.context is None
    assert event.payload_ref is not None
    assert b"x" * 100_000 in await stand.runtime.payloads.get(event.payload_ref)


async def test_every_problem_of_a_start_is_named(client: Client) -> None:
    async with client.post("/api/executions", json={"pth": "x", "workload": []}) as answer:
        told = await answer.json(content_type=None)
        assert (answer.status, answer.content_type) == (422, "application/problem+json")
    assert [one.partition(":")[0] for one in told["problems"]] == ["pth", "path", "workload"]


async def test_an_unknown_playbook_is_not_found(client: Client) -> None:
    status, told = await post(client, "/api/executions", {"path": "examples/lode"})
    assert status == 404
    assert "examples/lode" in told["detail"]


# ---------------------------------------------------------------- looking


async def test_an_execution_is_shown_right_after_its_start_without_a_projector(
    client: Client,
) -> None:
    _, made = await post(client, "/api/executions", {"path": "examples/load"})

    status, shown = await get(client, f"/api/executions/{made['execution_id']}")

    assert (status, shown["status"], shown["head_seq"]) == (200, "RUNNING", 1)
    assert (shown["execution_id"], shown["path"]) == (made["execution_id"], "examples/load")


async def test_what_was_folded_for_a_reader_equals_what_is_projected_later(
    client: Client, stand: Stand
) -> None:
    story = Story(stand.log.ids.take(100)[0])
    await stand.log.store.append(story.whole())
    _, folded = await get(client, f"/api/executions/{story.root.id}")

    await stand.project()
    _, projected = await get(client, f"/api/executions/{story.root.id}")

    parts = ("stages", "commands")
    assert [one["frames_done"] for one in projected["stages"]] == [2]
    assert {k: v for k, v in folded.items() if k not in parts} == {
        k: v for k, v in projected.items() if k not in parts
    }


async def test_a_reader_waits_for_a_projector_that_is_about_to_be_done(
    client: Client, stand: Stand
) -> None:
    story = Story(stand.log.ids.take(100)[0])
    await stand.log.store.append(story.whole())
    asked = asyncio.create_task(get(client, f"/api/executions/{story.root.id}"))
    await asyncio.sleep(0.1)
    assert not asked.done()

    await stand.project()

    _, shown = await asyncio.wait_for(asked, 1.5)
    assert (shown["status"], len(shown["stages"])) == ("COMPLETED", 1)


async def test_executions_are_listed_by_status_and_path_a_page_at_a_time(
    client: Client, stand: Stand
) -> None:
    path = f"examples/{stand.log.ids.next()}"
    stories = [Story(stand.log.ids.take(100)[0]) for _ in range(3)]
    for story in stories:
        await stand.log.store.append([story.began(path)])
    await stand.log.store.append([stories[0].ended()])
    await stand.project()

    _, page = await get(client, "/api/executions", params={"path": path, "limit": 2})
    _, rest = await get(
        client, "/api/executions", params={"path": path, "limit": 2, "before": page["next"]}
    )
    _, ended = await get(client, "/api/executions", params={"path": path, "status": "COMPLETED"})

    ids = [str(story.root.id) for story in stories]
    assert [one["execution_id"] for one in page["executions"]] == ids[:0:-1]
    assert [one["execution_id"] for one in rest["executions"]] == ids[:1]
    assert rest["next"] is None
    assert [one["execution_id"] for one in ended["executions"]] == ids[:1]


async def test_events_come_in_order_a_page_at_a_time(client: Client, stand: Stand) -> None:
    story = Story(stand.log.ids.take(100)[0])
    await stand.log.store.append(story.whole())
    path = f"/api/executions/{story.root.id}/events"

    _, page = await get(client, path, params={"limit": 15})
    _, rest = await get(client, path, params={"after": page["next"]})

    told = [*page["events"], *rest["events"]]
    assert [one["seq"] for one in told] == list(range(1, 20))
    assert rest["next"] is None
    assert told[4]["meta"]["frame_id"] == str(story.frame_id(0))


async def test_another_tenants_execution_is_not_there(client: Client, stand: Stand) -> None:
    story = await begun(stand)
    strange = {"Noetl-Tenant": "other"}
    for path in (f"/api/executions/{story.root.id}", f"/api/executions/{story.root.id}/events"):
        assert (await get(client, path, headers=strange))[0] == 404
    claim = f"/api/stages/{story.stage_id}/frames/claim"
    assert (await post(client, claim, {"worker_id": "w"}, headers=strange))[0] == 404


# ---------------------------------------------------------------- cancelling


async def test_a_cancelled_execution_is_seen_at_once_and_cancelled_only_once(
    client: Client, stand: Stand
) -> None:
    story = await begun(stand)
    path = f"/api/executions/{story.root.id}"

    status, _ = await post(client, f"{path}/cancel", {"by": "ana", "reason": "wrong day"})
    _, shown = await get(client, path)
    again, told = await post(client, f"{path}/cancel", {"by": "ana"})

    assert (status, shown["status"], shown["error"]) == (200, "CANCELLED", "wrong day")
    assert (again, told["type"]) == (409, "urn:noetl:problem:root-ended")


# ---------------------------------------------------------------- suspending


async def test_a_suspended_execution_is_seen_at_once_and_gives_no_work_until_resumed(
    client: Client, stand: Stand
) -> None:
    story = await begun(stand)
    path = f"/api/executions/{story.root.id}"
    frames = f"/api/stages/{story.stage_id}/frames/claim"
    commands = {"worker_id": "w", "pool": f"p{story.root.id}"}

    status, made = await post(client, f"{path}/suspend", {"by": "ana", "reason": "API down"})
    _, shown = await get(client, path)
    assert (status, made["status"], shown["status"]) == (200, "SUSPENDED", "SUSPENDED")
    assert (shown["error"], shown["head_seq"]) == ("API down", made["seq"])
    again, told = await post(client, f"{path}/suspend", {"reason": "again"})
    assert (again, told["type"]) == (409, "urn:noetl:problem:already-so")
    await stand.project()
    assert (await post(client, frames, {"worker_id": "w"}))[1] == []
    assert (await post(client, "/api/commands/claim", commands))[1] == []

    assert (await post(client, f"{path}/resume"))[0] == 200
    _, shown = await get(client, path)
    assert (shown["status"], shown["error"]) == ("RUNNING", None)
    assert (await post(client, f"{path}/resume"))[0] == 409
    await stand.project()
    assert len((await post(client, frames, {"worker_id": "w"}))[1]) == 1
    assert len((await post(client, "/api/commands/claim", commands))[1]) == 1


async def test_a_suspension_needs_a_reason_an_execution_and_one_that_has_not_ended(
    client: Client, stand: Stand
) -> None:
    story = await begun(stand)
    path = f"/api/executions/{story.root.id}"
    assert (await post(client, f"{path}/suspend", {}))[0] == 422
    assert (await post(client, f"{path}/suspend", {"reason": "a\nb"}))[0] == 422
    assert (await post(client, "/api/executions/5/suspend", {"reason": "x"}))[0] == 404
    await post(client, f"{path}/suspend", {"reason": "x"})
    assert (await post(client, f"{path}/cancel", {"by": "ana"}))[0] == 200
    _, shown = await get(client, path)
    assert shown["status"] == "CANCELLED"
    for what in ("suspend", "resume"):
        status, told = await post(
            client, f"{path}/{what}", {"reason": "x"} if what == "suspend" else {}
        )
        assert (status, told["type"]) == (409, "urn:noetl:problem:root-ended")


# ---------------------------------------------------------------- frames


async def test_a_frame_is_claimed_kept_and_committed(client: Client, stand: Stand) -> None:
    story = await begun(stand)
    path = f"/api/stages/{story.stage_id}/frames/claim"

    _, won = await post(client, path, {"worker_id": "w-9", "want": 1, "max_inflight": 4})
    (frame,) = won
    assert frame["frame_id"] == str(story.frame_id(0))
    assert frame["cursor"] == {"kind": "list", "from": 0, "to": 5}
    assert frame["document"]["items"] == list(range(10))
    assert (frame["dsl_ref"], frame["frame_policy"]) == ("examples/load@1#load", {"size": 5})
    assert (frame["attempt"], frame["version"], frame["catalog_id"]) == (1, 2, "9")

    own = f"/api/frames/{frame['frame_id']}"
    status, beat = await post(client, f"{own}/heartbeat", {"worker_id": "w-9", "cursor": {}})
    assert (status, beat["version"]) == (200, 3)
    assert beat["lease_until"] >= frame["lease_until"]

    done = {"worker_id": "w-9", "cursor": frame["cursor"], "row_count": 5, "status": "success"}
    status, told = await post(client, f"{own}/commit", done)
    assert (status, told) == (200, {"ok": True, "next_action": "claim"})
    stream = [e.type for e in await root_events(stand.log.store, story.root.id)]
    assert stream[-3:] == ["frame.claimed", "frame.heartbeat", "frame.committed"]


async def test_a_commit_sent_twice_counts_once_and_another_one_is_refused(
    client: Client, stand: Stand
) -> None:
    story = await begun(stand, frames=1)
    await post(client, f"/api/stages/{story.stage_id}/frames/claim", {"worker_id": "w"})
    path = f"/api/frames/{story.frame_id(0)}/commit"

    first, _ = await post(client, path, {"worker_id": "w", "row_count": 5})
    again, _ = await post(client, path, {"worker_id": "w", "row_count": 5})
    other, _ = await post(client, path, {"worker_id": "w", "row_count": 4})
    stranger, _ = await post(client, path, {"worker_id": "v", "row_count": 5})

    assert (first, again, other, stranger) == (200, 200, 409, 409)
    types = [e.type for e in await root_events(stand.log.store, story.root.id)]
    assert types.count("frame.committed") == 1


async def test_many_workers_that_ask_at_once_never_share_a_frame(
    client: Client, stand: Stand
) -> None:
    story = await begun(stand, frames=4)
    path = f"/api/stages/{story.stage_id}/frames/claim"
    asks = [post(client, path, {"worker_id": f"w-{n}", "want": 4}) for n in range(6)]

    won = [one["frame_id"] for _, frames in await asyncio.gather(*asks) for one in frames]

    assert sorted(won) == sorted(str(story.frame_id(number)) for number in range(4))


async def test_a_worker_holds_no_more_frames_than_it_said(client: Client, stand: Stand) -> None:
    story = await begun(stand, frames=4)
    path = f"/api/stages/{story.stage_id}/frames/claim"
    body = {"worker_id": "w", "want": 3, "max_inflight": 2}

    _, first = await post(client, path, body)
    await stand.project()
    _, second = await post(client, path, body)

    assert (len(first), second) == (2, [])


async def test_a_frame_that_somebody_else_holds_is_refused(client: Client, stand: Stand) -> None:
    story = await begun(stand, frames=1)
    await post(client, f"/api/stages/{story.stage_id}/frames/claim", {"worker_id": "w"})
    own = f"/api/frames/{story.frame_id(0)}"

    for body in ({"worker_id": "v"}, {"worker_id": "w", "attempt": 7}):
        for action in ("heartbeat", "commit"):
            status, told = await post(client, f"{own}/{action}", body)
            assert (status, told["type"]) == (409, "urn:noetl:problem:not-yours")


async def test_a_failed_frame_is_told_with_its_reason(client: Client, stand: Stand) -> None:
    story = await begun(stand, frames=1)
    await post(client, f"/api/stages/{story.stage_id}/frames/claim", {"worker_id": "w"})
    body = {"worker_id": "w", "status": "failed", "error": "the disk is full"}

    status, _ = await post(client, f"/api/frames/{story.frame_id(0)}/commit", body)

    last = (await root_events(stand.log.store, story.root.id))[-1]
    assert (status, last.type, last.error) == (200, "frame.failed", "the disk is full")


# ---------------------------------------------------------------- commands, payloads, catalog


async def test_a_command_is_claimed_kept_and_completed(client: Client, stand: Stand) -> None:
    story = await begun(stand)
    ask = {"worker_id": "w", "pool": f"p{story.root.id}"}
    _, none = await post(client, "/api/commands/claim", {**ask, "tools": ["http"]})
    _, won = await post(client, "/api/commands/claim", {**ask, "tools": ["noop"], "want": 5})
    assert none == []
    (command,) = won
    assert (command["step"], command["tool"], command["version"]) == ("tell", "noop", 2)
    assert "input" in command["document"]

    own = f"/api/commands/{command['command_id']}"
    assert (await post(client, f"{own}/heartbeat", {"worker_id": "w"}))[0] == 200
    assert (await post(client, f"{own}/heartbeat", {"worker_id": "v"}))[0] == 409
    done = {"worker_id": "w", "data": {"told": 1}}
    assert (await post(client, f"{own}/complete", done))[0] == 200
    assert (await post(client, f"{own}/complete", done))[0] == 200
    assert (await post(client, f"{own}/complete", {**done, "worker_id": "v"}))[0] == 409

    events = await root_events(stand.log.store, story.root.id)
    assert [e.type for e in events].count("command.completed") == 1
    assert events[-1].result == {"status": "success", "meta": {}, "data": {"told": 1}}


async def test_a_payload_is_stored_and_fetched_by_its_reference(client: Client) -> None:
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    async with client.post("/api/payloads?row_count=3", data=b"rows", headers=kind) as answer:
        assert answer.status == 201
        ref = await answer.json()
    assert (ref["row_count"], ref["media_type"]) == (3, kind["Content-Type"])
    async with client.get(ref["url"]) as answer:
        assert await answer.read() == b"rows"
    missing = "/api/payloads/" + "0" * 64
    assert (await get(client, f"{missing}?byte_length=4"))[0] == 404
    assert (await get(client, missing))[0] == 422


async def test_a_playbook_is_registered_listed_shown_and_started_at_once(
    client: Client, stand: Stand
) -> None:
    path = f"team/{stand.log.ids.next()}"
    sent = {"content": PLAYBOOK, "path": path}
    status, made = await post(client, "/api/catalog", sent)
    again, _ = await post(client, "/api/catalog", sent)

    _, shown = await get(client, f"/api/catalog/{path}")
    _, listed = await get(client, "/api/catalog")

    assert (status, again, made["version"]) == (201, 200, 1)
    assert (shown["content"], shown["catalog_id"]) == (PLAYBOOK, made["catalog_id"])
    assert path in [one["path"] for one in listed["catalog"]]
    assert (await get(client, f"/api/catalog/{path}?version=7"))[0] == 404
    assert (await post(client, "/api/executions", {"path": path}))[0] == 201


async def test_a_playbook_with_mistakes_is_refused_with_all_of_them(client: Client) -> None:
    content = PLAYBOOK.replace("noop", "nop").replace("workflow:", "workfow: 1\nworkflow:")
    status, told = await post(client, "/api/catalog", {"content": content})
    assert status == 422
    assert len(told["problems"]) == 2


# ---------------------------------------------------------------- the server itself


async def test_whatever_goes_wrong_is_a_problem(client: Client) -> None:
    for path, status in (
        ("/api/nothing", 404),
        ("/api/executions/abc", 422),
        ("/api/executions/5", 404),
        ("/api/executions?limit=-1", 422),
    ):
        async with client.get(path) as answer:
            told = await answer.json(content_type=None)
            assert (answer.status, answer.content_type) == (status, "application/problem+json")
            assert told["status"] == status
            assert told["detail"]


async def test_the_description_and_the_health_are_served(client: Client) -> None:
    assert (await get(client, "/openapi.json"))[1]["openapi"] == "3.1.0"
    assert await get(client, "/healthz") == (200, {"status": "ok"})


async def test_a_root_of_another_kind_is_no_execution(client: Client, stand: Stand) -> None:
    _, made = await post(client, "/api/catalog", {"content": PLAYBOOK, "path": "odd"})
    assert await stand.runtime.seen.head(Root("catalog", int(made["catalog_id"])))
    assert (await get(client, f"/api/executions/{made['catalog_id']}"))[0] == 404
