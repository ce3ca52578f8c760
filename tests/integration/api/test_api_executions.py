"""Executions as callers of the API meet them: started, looked at, cancelled, suspended."""

from __future__ import annotations

import asyncio

import pytest

from streams.collector.core import retained_id
from streams.events.model import Root
from tests.conftest import make_event
from tests.support.api.server import PLAYBOOK, SCOPE, Client, Stand, begun, get, post
from tests.support.log.databases import root_events
from tests.support.projector.executions import Story

pytestmark = pytest.mark.stack


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
    path = f"/api/executions/{made['execution_id']}/events"
    (listed,) = (await get(client, path))[1]["events"]
    assert "context" not in listed
    (listed,) = (await get(client, f"{path}?resolve=1"))[1]["events"]
    assert listed["context"] == {"workload": body["workload"]}
    await stand.runtime.payloads.delete(event.payload_ref)
    (listed,) = (await get(client, f"{path}?resolve=1"))[1]["events"]
    assert (listed["context"]["kind"], listed["payload_ref"]["sha256"]) == (
        "missing",
        event.payload_ref.sha256,
    )


async def test_data_that_has_expired_is_told_by_its_tombstone(client: Client, stand: Stand) -> None:
    body = {"path": "examples/load", "workload": {"text": "y" * 100_000}}
    _, made = await post(client, "/api/executions", body)
    root = Root("execution", int(made["execution_id"]))
    (event,) = await root_events(stand.log.store, root.id)
    assert event.payload_ref is not None
    meta = {"result_id": str(retained_id(root.id, event.payload_ref.sha256)), "reason": "retention"}
    await stand.log.store.append([make_event(root.id, "result.expired", meta=meta)])
    events = (await get(client, f"/api/executions/{root.id}/events?resolve=1"))[1]["events"]
    assert events[0]["context"]["kind"] == "tombstone"
    assert events[0]["context"]["reason"] == "retention"
    assert events[0]["context"]["expired_at"]
    assert events[0]["payload_ref"]["sha256"] == event.payload_ref.sha256


async def test_a_result_that_its_event_did_not_carry_is_shown_where_it_is_asked_for(
    client: Client, stand: Stand
) -> None:
    _, made = await post(client, "/api/executions", {"path": "examples/load"})
    execution_id = int(made["execution_id"])
    ref = await stand.runtime.payloads.put(SCOPE, b'{"x": 1}', media_type="application/json")
    ended = make_event(
        execution_id,
        "playbook.completed",
        status="COMPLETED",
        result={"status": "success", "meta": {}},
        payload_ref=ref,
    )
    await stand.log.store.append([ended])
    path = f"/api/executions/{execution_id}"
    for _ in ("folded", "projected"):
        _, shown = await get(client, path)
        assert "data" not in shown["result"]
        async with client.get(shown["result_ref"]["url"]) as answer:
            assert await answer.json(content_type=None) == {"x": 1}
        _, shown = await get(client, f"{path}?resolve=1")
        assert shown["result"] == {"status": "success", "meta": {}, "data": {"x": 1}}
        await stand.project()
    await stand.runtime.payloads.delete(ref)
    _, shown = await get(client, f"{path}?resolve=1")
    assert shown["result"]["data"]["kind"] == "missing"


async def test_every_problem_of_a_start_is_named(client: Client) -> None:
    async with client.post("/api/executions", json={"pth": "x", "workload": []}) as answer:
        body = await answer.json(content_type=None)
        assert (answer.status, answer.content_type) == (422, "application/problem+json")
    assert [one.partition(":")[0] for one in body["problems"]] == ["pth", "path", "workload"]


async def test_an_unknown_playbook_is_not_found(client: Client) -> None:
    status, answer = await post(client, "/api/executions", {"path": "examples/lode"})
    assert status == 404
    assert "examples/lode" in answer["detail"]


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

    events = [*page["events"], *rest["events"]]
    assert [one["seq"] for one in events] == list(range(1, 20))
    assert rest["next"] is None
    assert events[4]["meta"]["frame_id"] == str(story.frame_id(0))


async def test_another_tenants_execution_is_not_there(client: Client, stand: Stand) -> None:
    story = await begun(stand)
    strange = {"Noetl-Tenant": "other"}
    for path in (f"/api/executions/{story.root.id}", f"/api/executions/{story.root.id}/events"):
        assert (await get(client, path, headers=strange))[0] == 404
    claim = f"/api/stages/{story.stage_id}/frames/claim"
    assert (await post(client, claim, {"worker_id": "w"}, headers=strange))[0] == 404


async def test_a_cancelled_execution_is_seen_at_once_and_cancelled_only_once(
    client: Client, stand: Stand
) -> None:
    story = await begun(stand)
    path = f"/api/executions/{story.root.id}"

    status, _ = await post(client, f"{path}/cancel", {"by": "ana", "reason": "wrong day"})
    _, shown = await get(client, path)
    again, answer = await post(client, f"{path}/cancel", {"by": "ana"})

    assert (status, shown["status"], shown["error"]) == (200, "CANCELLED", "wrong day")
    assert (again, answer["type"]) == (409, "urn:noetl:problem:root-ended")


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
    again, answer = await post(client, f"{path}/suspend", {"reason": "again"})
    assert (again, answer["type"]) == (409, "urn:noetl:problem:already-so")
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
        status, answer = await post(
            client, f"{path}/{what}", {"reason": "x"} if what == "suspend" else {}
        )
        assert (status, answer["type"]) == (409, "urn:noetl:problem:root-ended")


async def test_a_root_of_another_kind_is_no_execution(client: Client, stand: Stand) -> None:
    _, made = await post(client, "/api/catalog", {"content": PLAYBOOK, "path": "odd"})
    assert await stand.runtime.projections.head(Root("catalog", int(made["catalog_id"])))
    assert (await get(client, f"/api/executions/{made['catalog_id']}"))[0] == 404
