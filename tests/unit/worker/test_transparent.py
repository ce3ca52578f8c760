"""Large results are passed by reference, and no handler can tell."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
import yaml

from streams.events.model import PayloadRef
from streams.log.port import Frontier
from streams.payload.objects.memory import MemoryPayloadStore
from streams.results.reference import ResultRef, result_uri
from streams.worker.port import Call, Config, Outcome
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, ok

SCRAPE = """
metadata: {path: tests/scrape}
workflow:
  - step: fetch
    tool:
      - page: {kind: http}
      - note: {kind: noop, data: {seen: true}}
    next: parse
  - step: parse
    tool:
      kind: duckdb
      html: "{{ fetch.page.html }}"
      same: "{{ fetch.page.data.html }}"
      title: "{{ fetch.page.title }}"
      seen: "{{ fetch.seen }}"
    next: count
  - step: count
    tool: {kind: noop, data: "{{ parse.length }}"}
return: {length: "{{ count.data }}", title: "{{ parse.title }}"}
"""
LARGE = 3 * 2**20
LIMIT = 80 * 1024


def handler(config: Config, call: Call) -> Outcome:
    html: Any = config["html"]
    assert isinstance(html, str)
    assert config["same"] == html
    return ok({"length": len(html), "title": config["title"], "keys": sorted(config)})


async def scraped(size: int) -> tuple[Any, Any, Any]:
    """Return what the handler gave, what it was called with but for the page, and the result."""
    page = {"html": "x" * size, "title": "hello"}
    parse = FakeTool(handler)
    async with whole(SCRAPE, http=FakeTool(lambda *_: ok(page)), duckdb=parse) as made:
        plan = await made.result()
        assert plan.error is None
        events, _ = await made.world.store.read_log(Frontier(), limit=1_000)
        for event in events:
            said = [event.context, event.result, event.error, dict(event.meta)]
            assert len(orjson.dumps(said)) < LIMIT
        (log,) = made.topics.logs.values()
        sent = [len(record.value or b"") for record in log if record is not None]
        assert len(sent) == 3
        assert max(sent) < LIMIT
    ((config, _),) = parse.calls
    rest = {name: value for name, value in config.items() if name not in ("html", "same")}
    return config["html"], rest, plan.result


async def test_a_handler_gets_the_same_from_a_small_and_a_large_result() -> None:
    small_html, small, small_result = await scraped(1_000)
    large_html, large, large_result = await scraped(LARGE)
    assert (len(small_html), len(large_html)) == (1_000, LARGE)
    assert small == large == {"title": "hello", "seen": True}
    assert small_result["data"] == {"length": 1_000, "title": "hello"}
    assert large_result["data"] == {"length": LARGE, "title": "hello"}


OWN = {"error": "none", "preview": "pp", "extracted": {"a": 1}, "ref": "mine", "tasks": 5}
OWN |= {"_ref": "me", "_store": "here", "_meta": {"b": 2}, "_preview": [3], "counts": 4}
FROM_ALL = """
metadata: {path: tests/keys}
workflow:
  - step: fetch
    tool: [{page: {kind: http}}, {last: {kind: http}}]
    next: parse
  - step: parse
    tool: {kind: duckdb, given: GIVEN, more: "{{ fetch.page.more }}"}
    next: {arcs: [{step: end, when: "{{ CHOSEN }}"}]}
  - step: end
    tool: {kind: noop}
return: "{{ parse.digest }}"
"""


async def given(template: str, size: int) -> Any:
    """Return what a handler gets from a template, and what the playbook comes to."""
    data = {**OWN, "blob": "x" * size, "more": True}
    parse = FakeTool(lambda config, _: ok({"digest": shortened(config["given"])}))
    text = FROM_ALL.replace("GIVEN", f"'{template}'").replace("CHOSEN", template.strip("{ }"))
    async with whole(text, http=FakeTool(lambda *_: ok(data)), duckdb=parse) as made:
        plan = await made.result()
    assert plan.error is None
    ((config, _),) = parse.calls
    return shortened(config["given"]), plan.result, plan.last_step


def shortened(value: Any) -> Any:
    """Return a value without what the two sizes differ in."""
    return orjson.loads(re.sub(rb"x{9,}", b"", orjson.dumps(value)))


@pytest.mark.parametrize(
    "way", ["", *(f".{name}" for name in OWN), ".result", ".keys() | list | sort", ".page", ".last"]
)
async def test_a_handler_cannot_tell_a_small_from_a_large_result(way: str) -> None:
    template = f"{{{{ fetch{way} }}}}"
    small, large = await given(template, 10), await given(template, 200_000)
    assert small == large
    if (name := way[1:]) in OWN:
        assert small[0] == OWN[name]


async def test_names_of_a_reference_win_over_keys_of_the_data_only_where_one_was_asked_for() -> (
    None
):
    spec = {"result": {"store": "auto"}}
    first = {"step": "fetch", "tool": [{"page": {"kind": "http", "spec": spec}}], "next": "use"}
    use = {"step": "use", "tool": {"kind": "duckdb", "x": ["{{ fetch._store }}"]}}
    text = yaml.safe_dump({"metadata": {"path": "tests/asked"}, "workflow": [first, use]})
    for size, store in ((10, "eventlog"), (200_000, "kv")):
        http = FakeTool(lambda *_, size=size: ok({**OWN, "blob": "x" * size}))
        tool = FakeTool(lambda *_: ok())
        async with whole(text, http=http, duckdb=tool) as made:
            assert (await made.result()).error is None
        assert [config["x"] for config, _ in tool.calls] == [[store]]


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (["{{ fetch.page._ref }}", "{{ fetch.page.more }}", "{{ fetch.note.data }}"], 0),
        (["{{ fetch.page.rows }}"], 1),
        (["{{ fetch.page.rows }}", "{{ fetch.page.data }}", "{{ fetch.page }}"], 1),
        (["{{ fetch.other.rows }}", "{{ fetch.page._meta.bytes }}"], 1),
    ],
)
async def test_only_what_templates_name_is_fetched_and_once(names: list[str], count: int) -> None:
    select = [{"path": "$.more", "as": "more"}]
    fetch = {"kind": "http", "spec": {"result": {"store": {"kind": "auto"}, "select": select}}}
    first = {
        "step": "fetch",
        "tool": [{"page": fetch}, {"other": {"kind": "http"}}, {"note": {"kind": "noop"}}],
        "next": "use",
    }
    use = {"step": "use", "tool": {"kind": "duckdb", "names": names}}
    steps = {"metadata": {"path": "tests/named"}, "workflow": [first, use]}
    data = {"rows": ["y" * 100] * 1_000, "more": True}
    text = yaml.safe_dump(steps)
    tools = {"http": FakeTool(lambda *_: ok(data)), "duckdb": FakeTool(lambda *_: ok())}
    async with whole(text, **tools) as made:
        reads = counted(made.world.payloads)
        plan = await made.result()
    assert plan.error is None
    assert len([ref for ref in reads if ref.byte_length > 50_000]) == count


def counted(store: MemoryPayloadStore) -> list[PayloadRef]:
    """Return a list to which every payload that is read is added."""
    reads: list[PayloadRef] = []
    get = store.get

    async def read(ref: PayloadRef) -> bytes:
        reads.append(ref)
        return await get(ref)

    store.get = read  # type: ignore[method-assign]
    return reads


LISTED = """
metadata: {path: tests/listed}
workflow:
  - step: pass
    loop: {in: [1]}
    tool: {kind: http}
    next: use
  - step: use
    tool: {kind: noop, data: "{{ pass.data }}"}
return: "{{ use.data }}"
"""


async def test_references_that_a_loop_passes_on_stay_references() -> None:
    gone = PayloadRef(uri="", sha256="0" * 64, media_type="application/json", byte_length=5)
    name = result_uri(1, "pass", "page", 1)
    one = ResultRef.to_payload(name, gone, store="s3", scope="execution").to_json()
    async with whole(LISTED, http=FakeTool(lambda *_: ok(one))) as made:
        plan = await made.result()
        assert plan.error is None
        assert plan.result["data"] == [one]
