"""Nobody reads more of a loop's rows than it may, whatever they are made of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from streams.events.model import PayloadRef
from streams.payload.arrow.rows import encode_rows
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, JSON, Scope
from streams.planner import decision_inputs
from streams.planner.decision_inputs import Unreadable
from streams.results.reading import MANIFEST, RowsPart, TooLargeToRead, encode_manifest, read_value
from streams.results.reference import ResultRef
from streams.results.stage_rows import TooLargeToJoin, read_stage
from streams.worker.attempt.input import Documents
from streams.worker.errors import ValueTooLarge
from streams.worker.tools.artifact import ArtifactTool
from streams.worker.tools.playbook import PlaybookTool
from tests.support.planner.with_worker import Whole, whole
from tests.support.worker.memory import FakeTool, ok

SCOPE = Scope("acme", "care")
MOST = 100_000


class Counting(MemoryPayloadStore):
    read_bytes = 0

    async def get(self, ref: PayloadRef) -> bytes:
        data = await super().get(ref)
        self.read_bytes += len(data)
        return data


async def manifest(store: MemoryPayloadStore, *frames: list[Any]) -> PayloadRef:
    parts = []
    for rows in frames:
        data = encode_rows(rows).data
        parts.append(RowsPart(len(rows), await store.put(SCOPE, data, media_type=ARROW)))
    return await store.put(SCOPE, encode_manifest(parts), media_type=MANIFEST)


async def wide(store: MemoryPayloadStore) -> PayloadRef:
    """Frames that together are too large."""
    return await manifest(store, *(["x" * 60_000, str(n)] for n in range(3)))


async def deep(store: MemoryPayloadStore) -> PayloadRef:
    """One small frame whose rows are references to results that together are too large."""
    rows = []
    for n in range(3):
        payload = await store.put(SCOPE, orjson.dumps(f"{n}" + "x" * 60_000), media_type=JSON)
        name = f"noetl://execution/1/step/a/task/b/{n}"
        rows.append(ResultRef.to_payload(name, payload, store="s3", scope="permanent").to_json())
    return await manifest(store, rows)


@pytest.fixture
def store() -> Counting:
    return Counting()


@pytest.mark.parametrize("made", [wide, deep])
async def test_a_loop_larger_than_allowed_is_not_fetched(store: Counting, made: Any) -> None:
    ref = await made(store)
    with pytest.raises(TooLargeToRead, match="at most 100000"):
        await read_value(store, ref, MOST)
    assert store.read_bytes < MOST
    assert len(await read_value(store, ref, 300_000)) in (3, 6)


@pytest.mark.parametrize("made", [wide, deep])
async def test_a_step_is_handed_no_more_than_a_worker_may(store: Counting, made: Any) -> None:
    ref = await made(store)
    with pytest.raises(ValueTooLarge, match="pass its name on"):
        await Documents(store, value_bytes=MOST).read(ref)
    assert store.read_bytes < MOST


@pytest.mark.parametrize("made", [wide, deep])
async def test_an_artifact_is_got_within_the_same_bounds(store: Counting, made: Any) -> None:
    with pytest.raises(ValueTooLarge):
        await ArtifactTool(store, value_bytes=MOST)._get(await made(store), None)
    assert store.read_bytes < MOST


@pytest.mark.parametrize("made", [wide, deep])
async def test_an_expression_of_the_planner_is_told_why(
    store: Counting, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_inputs, "LARGEST_EXPRESSION_PAYLOAD_BYTES", MOST)
    ports: Any = SimpleNamespace(payloads=store)
    found = await decision_inputs.result_of(ports, await made(store))
    assert isinstance(found, Unreadable)
    assert "too many to be read between steps" in found.why
    assert store.read_bytes < MOST


@pytest.mark.parametrize("made", [wide, deep])
async def test_one_table_is_made_of_no_more_than_allowed(store: Counting, made: Any) -> None:
    with pytest.raises(TooLargeToJoin, match="more than the 100000"):
        await read_stage(store, await made(store), MOST)
    assert store.read_bytes < MOST


async def test_a_frame_alone_is_bounded_too(store: Counting) -> None:
    ref = await store.put(SCOPE, encode_rows(["x" * 200_000]).data, media_type=ARROW)
    with pytest.raises(TooLargeToJoin):
        await read_stage(store, ref, MOST)


async def test_what_a_called_playbook_returns_is_bounded() -> None:
    parent = """
metadata: {path: tests/p}
workflow: [{step: call, tool: [{c: {kind: playbook, path: tests/c}}, {d: {kind: noop}}]}]
"""
    child = """
metadata: {path: tests/c}
workflow: [{step: x, tool: {kind: http}}]
return: "{{ x.data }}"
"""

    class Small(PlaybookTool):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, value_bytes=MOST)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.support.planner.with_worker.PlaybookTool", Small)
        tool = FakeTool(lambda *_: ok("x" * 2 * MOST))
        async with whole(parent, child, http=tool) as made:
            assert isinstance(made, Whole)
            plan = await made.result()
    assert plan.status == "FAILED"
    assert "a task is passed at most 100000" in str(plan.error)
