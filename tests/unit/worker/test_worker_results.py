"""What becomes of results: stored, published, seen, and read back by who names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import get_ident
from typing import Any

import orjson
import pytest

from streams.events.locator import ResultUri, parse
from streams.events.model import PayloadRef
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Compression, Scope
from streams.playbook.data_flow import key_paths_of
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Step
from streams.playbook.result_policy import ResultPolicy, policy_of
from streams.playbook.views import result_view
from streams.playbook.yaml_document import Document
from streams.results.copies.port import Copies, Copy
from streams.results.reference import ResultRef
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.frame import FrameRunner
from streams.worker.attempt.input import Documents
from streams.worker.attempt.result_fields import IN_A_THREAD_BYTES
from streams.worker.attempt.result_writer import ResultWriter
from tests.support.worker.memory import FakeTool, World, loop_step, ok, rule, task

PAGE = {"rows": ["x" * 100] * 1000, "paging": {"more": True}}
SELECT = [{"path": "$.paging.more", "as": "more"}]
SCOPE = Scope("acme", "care")
PACKED = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}
PACKED["none"] = b'{"rows":["xx'


def spec(**result: Any) -> dict[str, Any]:
    return {"result": {"select": SELECT, **result}}


def pages(*_: Any) -> FakeTool:
    return FakeTool(lambda config, call: ok(PAGE))


def world(*tasks: Any, **tools: Any) -> World:
    step = Step(name="once", tasks=tasks, key_paths=key_paths_of(tasks, None))
    return World(step, {"t": FakeTool(), **tools})


async def ran(here: World, **changes: Any) -> Any:
    await CommandRunner(here.ports, here.options()).run(await here.command(**changes))
    return await here.last()


async def read(here: World, ref: Mapping[str, Any]) -> Any:
    return orjson.loads(await here.payloads.get(ResultRef(ref).payload(SCOPE)))


async def test_a_stored_result_is_told_before_the_command_ends() -> None:
    fetch = task("page", "t", {}, spec=spec(store={"kind": "auto", "ttl": "30m"}))
    here = world(fetch, t=pages())
    last = await ran(here)
    assert [e.type for e in await here.events()][-2:] == ["result.stored", "command.completed"]
    stored, ref = (await here.events("result."))[0], last.result["ref"]
    assert stored.result == ref
    assert (ref["kind"], ref["store"], ref["scope"]) == ("result_ref", "kv", "execution")
    assert ref["expires_at"] == stored.meta["expires_at"]
    assert ref["extracted"] == last.result["extracted"] == {"more": True}
    assert isinstance(parse(ref["ref"]), ResultUri)
    assert await read(here, ref) == PAGE
    # Its life ends by an event, so nothing else may hold on to it.
    assert (last.payload_ref, stored.payload_ref.sha256) == (None, ref["meta"]["sha256"])


async def test_a_small_result_stays_in_its_event() -> None:
    here = world(task("page", "t", {"a": 1}, spec={"result": {"store": {"kind": "auto"}}}))
    last = await ran(here)
    assert last.result["data"] == {"a": 1}
    assert await here.events("result.") == []


@pytest.mark.parametrize(
    ("limit", "size", "is_stored"),
    [
        (100, 89, False),
        (100, 90, True),
        (0, 1, True),
        (65_536, 32_757, False),
        (65_536, 32_758, True),
    ],
)
async def test_a_result_leaves_its_event_from_the_size_its_task_says(
    limit: int, size: int, is_stored: bool
) -> None:
    noted = PlaybookDraft(Document())
    result = policy_of(noted, {"result": {"inline_max_bytes": limit}}, ())
    data = {"text": "x" * size}
    here = world(replace(task("page", "t", data), result=result))
    last = await ran(here)
    assert ("ref" in last.result, "data" in last.result) == (is_stored, not is_stored)


@pytest.mark.parametrize("limit", [0, 40, 200, 4_000])
async def test_a_first_look_is_as_large_as_its_task_says(limit: int) -> None:
    fetch = task("page", "t", {}, spec=spec(store="object", preview_max_bytes=limit))
    data = {f"field_{n}": n for n in range(50)}
    ref = (await ran(world(fetch, t=FakeTool(lambda *_: ok(data))))).result["ref"]
    look = ref["preview"]
    assert len(orjson.dumps(look)) <= max(limit, len(b"null"))
    whole = len(orjson.dumps(data))
    assert look == data if limit > whole else look is None or 0 < len(look) < 50
    assert (look is None) == (limit == 0)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4", "none"])
async def test_a_result_is_packed_as_its_task_says_whatever_the_store_does(codec: str) -> None:
    fetch = task("page", "t", {}, spec=spec(store={"kind": "object", "compression": codec}))
    usual: Compression = "zstd" if codec == "none" else "none"
    store = MemoryPayloadStore(compression=usual)
    here = World(Step(name="once", tasks=(fetch,)), {"t": pages()}, payloads=store)
    ref = (await ran(here)).result["ref"]
    ((key, stored),) = here.payloads.objects.items()
    assert ref["meta"]["sha256"] in key.replace("/", "")
    assert ref["meta"].get("compression", "none") == codec
    assert PACKED[codec] in stored[:200]
    assert (len(stored) < 20_000) == (codec != "none")
    assert await read(here, ref) == PAGE


@pytest.mark.parametrize(("large", "size"), [("gcs", 10_000_000), ("object", 9_000_000)])
async def test_a_large_result_names_the_payload_store_that_there_is(large: str, size: int) -> None:
    fetch = task("page", "t", {}, spec={"result": {"store": "auto"}})
    here = world(fetch, t=FakeTool(lambda *_: ok("x" * size)))
    runner = CommandRunner(here.ports, here.options(large_store="gcs"))
    await runner.run(await here.command())
    assert (await here.last()).result["ref"]["store"] == large


@pytest.mark.parametrize("size", [1, 40_000])
async def test_templates_may_ask_where_a_result_is_whatever_its_size(size: int) -> None:
    asked = {"ref": "{{ page._ref }}", "store": "{{ page._store }}"}
    asked["bytes"] = "{{ page._meta.bytes | default(0) }}"
    kept = replace(task("page", "t", {"a": "x" * size}, spec={"result": {}}), is_read=True)
    here = world(kept, task("show", "t", asked))
    last = await ran(here)
    ref = last.result["tasks"]["page"].get("ref") or {"ref": None, "store": "eventlog", "meta": {}}
    fields = {"ref": ref["ref"], "store": ref["store"], "bytes": ref["meta"].get("bytes", 0)}
    assert last.result["data"] == fields
    assert fields["store"] == ("eventlog" if size == 1 else "kv")
    between = result_view(last.result)["page"]
    assert (between["_ref"], between["_store"]) == (fields["ref"], fields["store"])


async def test_a_named_store_takes_small_results_too() -> None:
    here = world(task("page", "t", {"a": 1}, spec={"result": {"store": {"kind": "db"}}}))
    assert (await ran(here)).result["ref"]["store"] == "db"


async def test_templates_of_the_pipeline_see_data_and_reference() -> None:
    names = {"a": "{{ page._ref }}", "b": "{{ page.more }}", "c": "{{ page.rows | length }}"}
    names["d"] = "{{ page._store }}"
    follow = rule(None, "continue", set_vars={"seen": "{{ outcome.result.extracted.more }}"})
    names["e"] = "{{ vars.seen }}"
    fetch = task("page", "fetch", {}, follow, spec=spec(store={"kind": "object"}))
    here = world(fetch, task("show", "t", names), fetch=pages())
    data = (await ran(here)).result["data"]
    (stored,) = await here.events("result.")
    assert data == {"a": stored.result["ref"], "b": True, "c": 1000, "d": "object", "e": True}


async def test_results_of_tasks_that_others_name_come_with_the_steps() -> None:
    fetch = replace(task("page", "fetch", {}), is_read=True)
    small = replace(task("small", "t", {"a": 1}), is_read=True)
    last = replace(task("last", "t", {"b": 2}), is_read=True)
    here = world(fetch, small, last, task_not_named := task("end", "t"), fetch=pages())
    assert not task_not_named.is_read
    tasks = (await ran(here)).result["tasks"]
    assert tasks.keys() == {"page", "small", "last"}
    assert tasks["small"]["data"] == {"a": 1}
    assert "data" not in tasks["page"]
    assert await read(here, tasks["page"]["ref"]) == PAGE


async def test_a_task_that_is_the_steps_last_is_not_told_twice() -> None:
    here = world(replace(task("page", "fetch", {}), is_read=True), fetch=pages())
    last = await ran(here)
    assert last.result["tasks"] == {"page": None}
    assert len(await here.events("result.")) == 1


@pytest.mark.parametrize(("size", "is_aside"), [(1_000, False), (IN_A_THREAD_BYTES, True)])
async def test_paths_into_a_large_result_are_followed_aside(size: int, is_aside: bool) -> None:
    threads: list[int] = []

    class Watched(ResultPolicy):
        def extract(self, data: Any) -> dict[str, Any]:
            threads.append(get_ident())
            return super().extract(data)

    selected = task("page", "t", {}, spec=spec()).result
    assert selected is not None
    here = world()

    async def at_once(call: Any) -> Any:
        return await call()

    writer = ResultWriter(
        await here.command(), here.payloads, Copies(), here.log, here.clock, at_once
    )
    page = {"paging": {"more": True}, "text": "x" * size}
    kept = await writer.store("page", Watched(select=selected.select), page, "0.1")
    assert kept.extracted == {"more": True}
    assert (threads != [get_ident()]) is is_aside


async def test_fields_too_large_to_be_selected_fail_the_task() -> None:
    select = [{"path": "$.rows", "as": "rows"}]
    here = world(task("page", "t", {}, spec={"result": {"select": select}}), t=pages())
    last = await ran(here)
    assert last.type == "command.failed"
    assert "select less" in last.error


async def test_rows_of_a_frame_leave_references_and_the_same_data_is_one_object() -> None:
    step = loop_step(task("page", "t", {}, spec=spec(store={"kind": "s3"})))
    here = World(step, {"t": pages()})
    await FrameRunner(here.ports, here.options()).run(await here.frame([1, 2, 3]))
    stored = await here.events("result.")
    assert len({event.meta["result_id"] for event in stored}) == 3
    assert len({event.payload_ref.uri for event in stored if event.payload_ref}) == 1
    last = await here.last()
    assert last.payload_ref.byte_length < 10_000
    rows = await here.ports.documents.read(last.payload_ref)
    assert [row["ref"] for row in rows] == [event.result["ref"] for event in stored]


class Shelf:
    """A tier that counts."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.given = 0

    async def put(self, copy: Copy) -> None:
        self.kept[copy.payload.uri] = copy.data

    async def get(self, ref: PayloadRef) -> bytes | None:
        self.given += 1
        return self.kept.get(ref.uri)

    async def delete(self, ref: PayloadRef) -> None:
        self.kept.pop(ref.uri, None)

    async def sweep(self) -> None:
        pass


class Ledger(Shelf):
    """A tier that looks what the log tells before it keeps anything."""

    def __init__(self, here: World) -> None:
        super().__init__()
        self.here, self.untold = here, []

    async def put(self, copy: Copy) -> None:
        names = [event.result["ref"] for event in await self.here.events("result.stored")]
        self.untold += [] if copy.uri in names else [copy.uri]
        await super().put(copy)


async def test_no_row_of_the_db_tier_is_without_the_event_that_can_end_it() -> None:
    step = loop_step(task("page", "t", "{{ iter }}", spec=spec(store={"kind": "db"})))
    here = World(step, {"t": FakeTool()})
    ledger = Ledger(here)
    here.ports = replace(here.ports, copies=Copies({"db": ledger}))
    await FrameRunner(here.ports, here.options()).run(await here.frame([1, 2, 3, 4, 5, 6]))
    assert ledger.untold == []
    assert (len(ledger.kept), len(await here.events("result.stored"))) == (6, 6)
    assert (await here.last()).type == "frame.committed"


@pytest.mark.parametrize("fate", ["kept", "lost", "spoilt"])
async def test_a_copy_is_read_first_and_never_needed(fate: str) -> None:
    shelf = Shelf()
    copies = Copies({"kv": shelf})
    here = world(task("page", "t", {}, spec=spec(store={"kind": "kv"})), t=pages())
    here.ports = replace(here.ports, copies=copies)
    ref = (await ran(here)).result["ref"]
    if fate == "lost":
        shelf.kept.clear()
    elif fate == "spoilt":
        shelf.kept = dict.fromkeys(shelf.kept, b"{}")
    else:
        here.payloads.objects.clear()
    documents = Documents(here.payloads, copies=copies)
    assert await documents.read(ResultRef(ref).payload(SCOPE), "kv") == PAGE
    assert shelf.given == 1


@pytest.mark.parametrize(("inline_bytes", "is_stored"), [(32_768, False), (100, True)])
async def test_a_deployment_says_what_stays_in_events(inline_bytes: int, is_stored: bool) -> None:
    first = task("first", "t", {}, is_read=True)
    here = world(first, task("page", "t", {}), t=FakeTool(lambda *_: ok({"text": "x" * 200})))
    options = here.options(inline_bytes=inline_bytes)
    await CommandRunner(here.ports, options).run(await here.command())
    last = await here.last()
    assert ("data" in last.result, "ref" in last.result) == (not is_stored, is_stored)
    assert ("ref" in last.result["tasks"]["first"]) is is_stored
    assert len(await here.events("result.stored")) == 2 * is_stored
