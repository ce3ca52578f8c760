"""Large results are passed by reference, and no handler can tell."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import yaml

from streams.envelope.model import PayloadRef
from streams.log.port import Frontier
from streams.payload.memory import MemoryPayloadStore
from streams.payload.results import result_reference, result_uri
from streams.worker.port import Call, Config, Outcome
from tests.unit.worker.stage import FakeTool, ok
from tests.whole import whole

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
    one = result_reference(name, gone, store="s3", scope="execution")
    async with whole(LISTED, http=FakeTool(lambda *_: ok(one))) as made:
        plan = await made.result()
        assert plan.error is None
        assert plan.result["data"] == [one]
