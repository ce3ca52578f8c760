"""Results by their names: got, listed, refused, expired."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest

from streams.payload.content import reference_json
from streams.payload.port import Scope
from streams.playbook.model import Step
from streams.playbook.spelling import Spelling
from streams.results.lookup import Results
from streams.results.reading import MANIFEST, RowsPart, encode_manifest
from streams.results.reference import ResultRef, results_of
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.frame import FrameRunner
from streams.worker.port import Call, Outcome
from streams.worker.tools.artifact import ArtifactTool
from tests.support.worker.memory import EXECUTION_ID, FakeTool, World, loop_step, ok, task

PAGE = {"rows": list(range(20_000))}


class Shop:
    """A world in which a command stored one result, and the tool that looks for it."""

    def __init__(self) -> None:
        spec = {"result": {"store": {"kind": "auto", "ttl": "30m"}}}
        step = Step(name="once", tasks=(task("page", "t", {}, spec=spec),))
        self.world = World(step, {"t": FakeTool(lambda *_: ok(PAGE))})
        results = Results(self.world.log, self.world.clock)
        self.tool = ArtifactTool(self.world.payloads, results)

    async def open(self) -> str:
        world = self.world
        await CommandRunner(world.ports, world.options()).run(await world.command())
        (stored,) = await world.events("result.")
        return str(stored.result["ref"])

    async def ask(
        self, tenant: str = "acme", spelling: Spelling = Spelling.SPEC, **config: Any
    ) -> Outcome:
        call = Call(
            tenant_id=tenant,
            organization_id="care",
            execution_id=EXECUTION_ID,
            step="later",
            task="get",
            entity_id=1,
            attempt=1,
            spelling=spelling,
        )
        return await self.tool.run(config, call)


@pytest.fixture
async def shop() -> Shop:
    return Shop()


def kind(outcome: Outcome) -> str:
    assert outcome.error is not None
    return str(outcome.error["kind"])


async def test_a_name_gets_the_data(shop: Shop) -> None:
    name = await shop.open()
    assert (await shop.ask(action="get", args={"ref": name})).data == PAGE
    assert (await shop.ask(ref=name)).data == PAGE


async def test_result_ref_of_noetl_is_a_name_or_a_result(shop: Shop) -> None:
    async def get(result_ref: Any) -> Outcome:
        return await shop.ask(
            spelling=Spelling.NOETL, action="get", input={"result_ref": result_ref}
        )

    name = await shop.open()
    assert (await get(name)).data == PAGE
    assert (await get({"_ref": name, "_store": "kv", "status": "ok"})).data == PAGE
    small = {"status": "ok", "data": {"n": 1}}
    assert (await get(small)).data == small
    assert kind(await get(None)) == "artifact.config"


async def test_a_listed_reference_gets_the_data_too(shop: Shop) -> None:
    name = await shop.open()
    listed: Any = (await shop.ask(action="list", step="once", task="page")).data
    assert [one["ref"] for one in listed] == [name]
    assert (await shop.ask(action="get", ref=listed[0])).data == PAGE
    assert (await shop.ask(action="list", task="other")).data == []


@pytest.mark.parametrize(
    ("asked", "part", "expected"),
    [
        ("0-8", slice(0, 9), "0-8"),
        ("5-5", slice(5, 6), "5-5"),
        ("{last}-", slice(-1, None), "{last}-{last}"),
        ("-7", slice(-7, None), None),
        ("0-999999999", slice(None), "0-{last}"),
    ],
)
async def test_a_part_of_it_is_text(
    shop: Shop, asked: str, part: slice, expected: str | None
) -> None:
    name, whole = await shop.open(), orjson.dumps(PAGE).decode()
    last = len(whole) - 1
    got = await shop.ask(ref=name, range=asked.format(last=last))
    assert got.data == whole[part]
    assert expected is None or got.meta["range"] == expected.format(last=last)


@pytest.mark.parametrize("asked", ["", "-", "9-3", "999999999-", "-0", "a-b", 5, "bytes=0-1"])
async def test_what_is_no_part_is_said_so(shop: Shop, asked: Any) -> None:
    name = await shop.open()
    assert kind(await shop.ask(ref=name, range=asked)) == "artifact.config"


async def test_a_part_may_be_had_of_what_is_too_large_as_a_whole(shop: Shop) -> None:
    name = await shop.open()
    results = Results(shop.world.log, shop.world.clock)
    shop.tool = ArtifactTool(shop.world.payloads, results, value_bytes=100)
    assert kind(await shop.ask(ref=name)) == "artifact.too_large"
    assert kind(await shop.ask(ref=name, range="0-100")) == "artifact.too_large"
    assert len(str((await shop.ask(ref=name, range="0-99")).data)) == 100


async def test_a_loops_rows_have_no_range_of_bytes(shop: Shop) -> None:
    world = shop.world
    rows = encode_manifest([RowsPart(2, None)])
    put = await world.payloads.put(Scope("acme", "care"), rows, media_type=MANIFEST)
    asked = reference_json(put)
    assert (await shop.ask(ref=asked)).data == [None, None]
    assert kind(await shop.ask(ref=asked, range="0-5")) == "artifact.config"


@pytest.mark.parametrize("asked", [2**63, "9" * 30, "9" * 5000, "-1", "1e3", ["1"]])
async def test_what_is_no_execution_is_said_so(shop: Shop, asked: Any) -> None:
    assert kind(await shop.ask(action="list", execution_id=asked)) == "artifact.config"


async def test_another_tenant_is_refused(shop: Shop) -> None:
    name = await shop.open()
    assert kind(await shop.ask(tenant="globex", ref=name)) == "artifact.refused"
    assert kind(await shop.ask(tenant="globex", action="list")) == "artifact.refused"


async def test_after_its_time_it_is_expired(shop: Shop) -> None:
    name = await shop.open()
    shop.world.clock.advance(timedelta(minutes=31).total_seconds())
    assert kind(await shop.ask(ref=name)) == "artifact.expired"
    assert (await shop.ask(action="list")).data == []


class Loop(Shop):
    """A world in which a frame stored its rows, and their loop's manifest."""

    def __init__(self, **store: Any) -> None:
        spec = {"result": {"store": {"kind": "s3", **store}}}
        row = task("page", "t", {"n": "{{ iter.item }}"}, spec=spec)
        self.world = World(loop_step(row), {"t": FakeTool()})
        results = Results(self.world.log, self.world.clock)
        self.tool = ArtifactTool(self.world.payloads, results)

    async def open(self) -> str:
        world = self.world
        item = await world.frame([1, 2])
        await FrameRunner(world.ports, world.options()).run(item)
        committed = await world.last()
        assert committed.type == "frame.committed"
        of = results_of(EXECUTION_ID, "load")
        rows = encode_manifest([RowsPart(2, committed.payload_ref, of)])
        put = await world.payloads.put(Scope("acme", "care"), rows, media_type=MANIFEST)
        ref = ResultRef.to_rows(EXECUTION_ID, "load", 3001, put).to_json()
        meta = {"result_id": "3001", "store": "object", "scope": "permanent", "task": "load"}
        await world.append(
            "result.stored", item, meta, "result.stored/3001", result=ref, payload_ref=put
        )
        return str(ref["ref"])

    async def end_rows(self, reason: str) -> None:
        """Append what the collector does."""
        item = await self.world.command()
        for stored in (await self.world.events("result.stored"))[:-1]:
            meta = {"result_id": stored.meta["result_id"], "reason": reason}
            key = f"result.expired/{stored.meta['result_id']}"
            await self.world.append("result.expired", item, meta, key)


async def test_a_loops_rows_are_not_had_by_its_name_after_their_time() -> None:
    loop = Loop(ttl="30m")
    name = await loop.open()
    assert (await loop.ask(ref=name)).data == [{"n": 1}, {"n": 2}]
    loop.world.clock.advance(1801)
    assert kind(await loop.ask(ref=name)) == "artifact.expired"


async def test_a_loops_rows_are_not_had_by_its_name_after_their_scope() -> None:
    loop = Loop(scope="execution")
    name = await loop.open()
    assert (await loop.ask(ref=name)).data == [{"n": 1}, {"n": 2}]
    await loop.end_rows("scope")
    assert kind(await loop.ask(ref=name)) == "artifact.expired"
    for stored in (await loop.world.events("result.stored"))[:-1]:
        assert stored.payload_ref is not None
        await loop.world.payloads.delete(stored.payload_ref)
    assert kind(await loop.ask(ref=name)) == "artifact.expired"


@pytest.mark.parametrize("end", ["soon", "2020-01-01T00:00:00", 7, None])
async def test_a_row_that_an_author_made_up_ends_nothing(end: Any) -> None:
    loop = Loop()
    await loop.open()
    payloads, scope = loop.world.payloads, Scope("acme", "care")
    data = await payloads.put(scope, b"5", media_type="application/json")
    row = ResultRef.to_payload("nothing of ours", data, store="s3", scope="execution").to_json()
    rows = await payloads.put(
        scope, orjson.dumps([{**row, "expires_at": end}]), media_type="application/json"
    )
    made = await payloads.put(scope, encode_manifest([RowsPart(1, rows)]), media_type=MANIFEST)
    assert (await loop.ask(ref=reference_json(made))).data == [5]


@pytest.mark.parametrize(
    ("step", "label", "expected"),
    [
        ("load", "frame", None),
        ("NOPE", "frame", "artifact.missing"),
        ("load", "page", "artifact.missing"),
    ],
)
async def test_a_frames_rows_have_one_name(step: str, label: str, expected: str | None) -> None:
    loop = Loop()
    await loop.open()
    got = await loop.ask(ref=f"noetl://execution/{EXECUTION_ID}/step/{step}/task/{label}/4001")
    assert (None if got.error is None else kind(got)) == expected


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        (None, "artifact.config"),
        (7, "artifact.config"),
        ("noetl://execution/1001/step/../task/a/1", "artifact.config"),
        ("noetl://execution/1001/step/once/task/page/77", "artifact.missing"),
        ("noetl://tenant/globex/org/care/payloads/sha256/" + "0" * 64, "artifact.refused"),
    ],
)
async def test_what_is_no_name_is_told(shop: Shop, ref: Any, expected: str) -> None:
    await shop.open()
    assert kind(await shop.ask(ref=ref)) == expected
