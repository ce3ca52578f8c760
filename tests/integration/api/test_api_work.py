"""Frames and commands as workers that speak HTTP meet them."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from streams.api.leases import read_frame
from streams.payload.port import JSON, Scope
from tests.support.api.server import Client, Stand, begun, post
from tests.support.log.databases import root_events

pytestmark = pytest.mark.stack


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
    status, answer = await post(client, f"{own}/commit", done)
    assert (status, answer) == (200, {"ok": True, "next_action": "claim"})
    stream = [e.type for e in await root_events(stand.log.store, story.root.id)]
    assert stream[-3:] == ["frame.claimed", "frame.heartbeat", "frame.committed"]


async def test_rows_of_a_checkpoint_count_with_those_of_the_commit(
    client: Client, stand: Stand
) -> None:
    story = await begun(stand, frames=1)
    path = f"/api/stages/{story.stage_id}/frames/claim"
    await post(client, path, {"worker_id": "w"})
    own = f"/api/frames/{story.frame_id(0)}"
    ref = await stand.runtime.payloads.put(Scope("acme", "care"), b"[1,2,3]", media_type=JSON)
    fields = {name: getattr(ref, name) for name in ("uri", "sha256", "media_type", "byte_length")}
    beat = {"worker_id": "w", "cursor": {"kind": "list", "from": 3, "to": 5}, "output_ref": fields}

    unknown, _ = await post(client, f"{own}/heartbeat", beat)
    wrong, why = await post(client, f"{own}/heartbeat", {**beat, "row_count": 4})
    stored, answer = await post(client, f"{own}/heartbeat", {**beat, "row_count": 3})
    done, _ = await post(client, f"{own}/commit", {"worker_id": "w", "row_count": 2})
    frame, _ = await read_frame(stand.runtime, story.root.id, story.frame_id(0))

    assert (unknown, wrong, stored, done) == (422, 422, 200, 200)
    assert "not at {'kind': 'list', 'from': 3, 'to': 5}" in str(why)
    assert answer["checkpointed"] is True
    assert (frame.row_count, frame.status) == (5, "COMMITTED")


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
            status, answer = await post(client, f"{own}/{action}", body)
            assert (status, answer["type"]) == (409, "urn:noetl:problem:not-yours")


async def test_a_failed_frame_is_told_with_its_reason(client: Client, stand: Stand) -> None:
    story = await begun(stand, frames=1)
    await post(client, f"/api/stages/{story.stage_id}/frames/claim", {"worker_id": "w"})
    body = {"worker_id": "w", "status": "failed", "error": "the disk is full"}

    status, _ = await post(client, f"/api/frames/{story.frame_id(0)}/commit", body)

    last = (await root_events(stand.log.store, story.root.id))[-1]
    assert (status, last.type, last.error) == (200, "frame.failed", "the disk is full")


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
    done = {"worker_id": "w", "data": {"n": 1}}
    assert (await post(client, f"{own}/complete", done))[0] == 200
    assert (await post(client, f"{own}/complete", done))[0] == 200
    assert (await post(client, f"{own}/complete", {**done, "worker_id": "v"}))[0] == 409

    events = await root_events(stand.log.store, story.root.id)
    assert [e.type for e in events].count("command.completed") == 1
    assert events[-1].result == {"status": "success", "meta": {}, "data": {"n": 1}}


async def test_large_data_of_a_command_leaves_its_event(client: Client, stand: Stand) -> None:
    story = await begun(stand)
    ask = {"worker_id": "w", "pool": f"p{story.root.id}", "tools": ["noop"]}
    ((command,),) = [(await post(client, "/api/commands/claim", ask))[1]]
    done = {"worker_id": "w", "data": {"text": "x" * 100_000}}
    for _ in range(2):
        status, _ = await post(client, f"/api/commands/{command['command_id']}/complete", done)
        assert status == 200

    last = (await root_events(stand.log.store, story.root.id))[-1]
    assert last.result == {"status": "success", "meta": {}}
    assert last.payload_ref is not None
    assert orjson.loads(await stand.runtime.payloads.get(last.payload_ref)) == done["data"]
