"""Large results on real parts: by reference, once, in order, and small everywhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.clock import SystemClock
from streams.dev.bench.large_result import move_result
from streams.payload.objects.open import open_shelves
from streams.resources import folder
from streams.worker.rows.kafka_ranges import KafkaPartitions
from tests.support.servers.runtime import Runtime, playbook

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
PAGE_BYTES = 3 * 2**20
RECORD_BYTES = 80 * 1024
LARGE_MB, GROWTH_MB = 256, 40
PARSE = """
import re
def main(html):
    return {"title": re.search("<title>(.*?)</title>", html)[1], "links": html.count("<a "),
            "length": len(html)}
"""


async def page(request: web.Request) -> web.Response:
    """A page of HTML of the size that is asked for."""
    number, size = int(request.query["n"]), int(request.query["size"])
    head = f"<html><title>page {number}</title>" + "<a href='x'>link</a>" * number
    return web.Response(text=head + "x" * (size - len(head)), content_type="text/html")


class Pages:
    """Rows of endpoints, page by page; busy the first time."""

    def __init__(self) -> None:
        self.busy = True
        self.asked: list[tuple[str, int]] = []

    async def answer(self, request: web.Request) -> web.Response:
        if self.busy:
            self.busy = False
            return web.Response(status=503)
        name, number = request.match_info["name"], int(request.query["page"])
        self.asked.append((name, number))
        last = {"patients": 3, "visits": 2}[name]
        rows = [{"id": n, "note": "y" * 1000} for n in range(int(request.query["pageSize"]))]
        return web.json_response(
            {"rows": rows, "paging": {"hasMore": number < last, "page": number}}
        )


@asynccontextmanager
async def served(pages: Pages) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/page", page)
    app.router.add_get("/{name}", pages.answer)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


def scrape(url: str, size: int) -> dict[str, Any]:
    fetch = {
        "step": "fetch",
        "tool": {"kind": "http", "method": "GET", "url": f"{url}/page?n=7&size={size}"},
        "next": "parse",
    }
    parse = {"kind": "python", "args": {"html": "{{ fetch.data }}"}, "code": PARSE}
    many = {
        "step": "many",
        "loop": {
            "in": [3, 1, 2],
            "iterator": "n",
            "spec": {"mode": "parallel"},
            "frame_policy": {"size": 1},
        },
        "tool": {"kind": "http", "url": f"{url}/page?n={{{{ iter.n }}}}&size={size}"},
        "next": "titles",
    }
    titles = {
        "kind": "python",
        "args": {"pages": "{{ many.data }}"},
        "code": "def main(pages):\n    return [[p[6:19], len(p)] for p in pages]\n",
    }
    made = playbook(
        fetch,
        {"step": "parse", "tool": parse, "next": "many"},
        many,
        {"step": "titles", "tool": titles},
    )
    return made | {"return": {"one": "{{ parse.data }}", "many": "{{ titles.data }}"}}


@asynccontextmanager
async def reading(
    runtime: Runtime,
) -> AsyncIterator[tuple[AIOKafkaConsumer, dict[TopicPartition, int]]]:
    """Open a consumer; tell the partitions of all topics but Kafka's own, and where they end."""
    bootstrap = runtime.settings.event_store.connection.url
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="none"
    )
    await consumer.start()
    try:
        places = []
        for topic in sorted(await consumer.topics()):
            if not topic.startswith("__"):
                ranges = await KafkaPartitions(bootstrap, SystemClock()).ranges(topic)
                places += [TopicPartition(topic, number) for number in ranges]
        yield consumer, await consumer.end_offsets(places)
    finally:
        await consumer.stop()


async def ends_of_topics(runtime: Runtime) -> Mapping[TopicPartition, int]:
    """Return where the topics end now."""
    async with reading(runtime) as (_, ends):
        return ends


async def largest_records(runtime: Runtime, since: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Return the size of the largest record that came since, by topic, whosever it is."""
    sizes: dict[str, int] = {}
    async with reading(runtime) as (consumer, ends):
        left = {place: end for place, end in ends.items() if end > since.get(place, 0)}
        consumer.assign(list(left))
        for place in left:
            consumer.seek(place, since.get(place, 0))
        while any([await consumer.position(place) < end for place, end in left.items()]):
            for place, records in (await consumer.getmany(timeout_ms=200)).items():
                largest = max(len(one.key or b"") + len(one.value or b"") for one in records)
                sizes[place.topic] = max(largest, sizes.get(place.topic, 0))
    return sizes


@pytest.mark.parametrize("size", [2_000, PAGE_BYTES])
async def test_pages_of_any_size_are_scraped_alike_and_no_record_is_large(
    runtime: Runtime, size: int
) -> None:
    before = await ends_of_topics(runtime)
    async with served(Pages()) as url:
        ended = await runtime.run(scrape(url, size))

    assert (ended.status, ended.error) == ("COMPLETED", None)
    (last,) = await runtime.events(ended.execution_id, "playbook.completed")
    assert last.result["data"] == {
        "one": {"title": "page 7", "links": 7, "length": size},
        "many": [[f"<title>page {n}", size] for n in (3, 1, 2)],
    }
    largest = await largest_records(runtime, before)
    assert largest.keys() >= {"noetl.events.execution", "noetl.work.default", "noetl.triggers"}
    assert max(largest.values()) < RECORD_BYTES
    (issued,) = [
        event
        for event in await runtime.events(ended.execution_id, "command.issued")
        if event.node_name == "parse"
    ]
    sent = issued.context["document"]["input"]
    assert ("blobs_refs" in sent) is (size == PAGE_BYTES)


async def test_results_are_located_by_the_objects_that_hold_their_bytes(runtime: Runtime) -> None:
    async with served(Pages()) as url:
        ended = await runtime.run(scrape(url, PAGE_BYTES))
    seen = "SELECT last_seq >= $2 FROM noetl.execution WHERE execution_id = $1"
    await runtime.until(seen, ended.execution_id, await runtime.seq(ended.execution_id))
    rows = await runtime.executions.connection.fetch(
        "SELECT physical_uri, task_label FROM noetl.result_ref WHERE execution_id = $1",
        ended.execution_id,
    )
    assert {row["task_label"] for row in rows} >= {"fetch", "many", "frame"}
    location = runtime.settings.payload_store.location
    async with open_shelves(runtime.settings) as shelves:
        for row in rows:
            assert row["physical_uri"].startswith(location)
            key = row["physical_uri"].removeprefix(location)
            assert await shelves.stat(key) is not None


@pytest.mark.parametrize("code", ["'x' * 300_000", "'a\\0b'"], ids=["large", "nul"])
async def test_any_value_goes_from_step_to_step_by_the_planner(runtime: Runtime, code: str) -> None:
    rule = {"else": {"do": "continue", "set_ctx": {"from_task": "{{ outcome.data }}"}}}
    make = {"kind": "python", "code": f"def main():\n    return {code}\n", "eval": [rule]}
    comparison = "{{ [args.text == ctx.from_task, ctx.from_set == text, text | length] }}"
    made = playbook(
        {
            "step": "make",
            "tool": [{"make": make}],
            "set": {"from_set": "{{ make.data }}"},
            "next": [{"step": "tell", "args": {"text": "{{ ctx.from_task }}"}}],
        },
        {"step": "tell", "tool": {"kind": "noop", "data": comparison}},
    )
    ended = await runtime.run(made | {"return": "{{ tell.data }}"})
    assert (ended.status, ended.error) == ("COMPLETED", None)
    (last,) = await runtime.events(ended.execution_id, "playbook.completed")
    assert last.result["data"] == [True, True, 300_000 if "300" in code else 3]


async def test_pages_are_fetched_until_there_are_no_more(runtime: Runtime) -> None:
    await runtime.author("DROP TABLE IF EXISTS pagination_test_results")
    await runtime.author(
        "CREATE TABLE pagination_test_results (endpoint text, page int, row_count int, ref text)"
    )
    text = (folder("examples") / "pagination.yaml").read_text("utf-8")
    text += '\nreturn: "{{ ctx.last_page_ref }}"\n'
    endpoints = [{"path": "/visits", "page_size": 5}, {"path": "/patients", "page_size": 100}]
    pages = Pages()
    async with served(pages) as url:
        path = f"test/{uuid4().hex}"
        execution_id = await runtime.start(
            text.replace("examples/pagination\n", f"{path}\n"), api_url=url, endpoints=endpoints
        )
        ended = await runtime.finish(execution_id)

    assert (ended.status, ended.error) == ("COMPLETED", None)
    expected = [("visits", n) for n in (1, 2)] + [("patients", n) for n in (1, 2, 3)]
    assert pages.asked == expected
    rows = await runtime.author("SELECT * FROM pagination_test_results")
    assert [(row["endpoint"][1:], row["page"]) for row in rows] == expected
    assert [row["row_count"] for row in rows] == [5, 5, 100, 100, 100]
    stored = await runtime.events(execution_id, "result.stored")
    assert [event.result["ref"] for event in stored] == [row["ref"] for row in rows[2:]]
    assert {row["ref"] for row in rows[:2]} == {None}
    for number, event in enumerate(stored, start=1):
        assert event.result["extracted"] == {"has_more": number < 3, "page": number}
        assert (event.meta["store"], event.meta["task"]) == ("kv", "fetch_page")
        assert event.meta["expires_at"] > event.event_time.isoformat()
    assert await resolved(runtime, rows[3]["ref"]) == 100
    (last,) = await runtime.events(execution_id, "playbook.completed")
    assert last.result["data"] == stored[-1].result["ref"]


async def resolved(runtime: Runtime, ref: str) -> int:
    """Ask the API for a page; return how many rows it has."""
    async with (
        aiohttp.ClientSession(runtime.api()) as session,
        session.get("/api/result/resolve", params={"ref": ref}) as answer,
    ):
        assert answer.status == 200
        return len((await answer.json())["rows"])


async def test_a_large_result_moves_in_little_memory(runtime: Runtime) -> None:
    figures = await move_result(runtime.settings, runtime.data, LARGE_MB)
    for role in ("worker", "api"):
        idle, peak = figures[f"{role}_idle_rss_mb"], figures[f"{role}_peak_rss_mb"]
        assert float(peak) - float(idle) < GROWTH_MB  # type: ignore[arg-type]


async def test_a_thousand_equal_results_of_one_fanout_are_one_object(runtime: Runtime) -> None:
    blob = {"kind": "noop", "data": "{{ workload.mark * 3000 }}"}
    blob["spec"] = {"result": {"store": {"kind": "s3", "scope": "permanent"}}}  # type: ignore[assignment]
    step = {
        "step": "same",
        "loop": {
            "in": "{{ range(1000) | list }}",
            "iterator": "n",
            "spec": {"mode": "fanout"},
            "frame_policy": {"size": 50, "row_concurrency": 8},
        },
        "tool": blob,
        "next": "count",
    }
    count = {"step": "count", "tool": {"kind": "noop", "data": "{{ same.total }}"}}
    made = playbook(step, count) | {"return": "{{ count.data }}"}
    before = await objects_of(runtime)

    ended = await runtime.run(made, mark=uuid4().hex)

    assert (ended.status, ended.error) == ("COMPLETED", None)
    stored = await runtime.events(ended.execution_id, "result.stored")
    assert len({event.meta["result_id"] for event in stored}) == 1000
    assert {event.payload_ref.byte_length for event in stored if event.payload_ref} == {96_002}
    commits = await runtime.events(ended.execution_id, "frame.committed")
    # The blob once, and what each frame gave: its rows, which are references.
    new = await objects_of(runtime) - before
    assert len(new) == 1 + len(commits)


async def objects_of(runtime: Runtime) -> set[str]:
    """Return the keys of the objects that the organization has in the payload store."""
    scope = runtime.settings.runtime
    async with open_shelves(runtime.settings) as shelves:
        found = shelves.list(f"{scope.tenant_id}/{scope.organization_id}/")
        return {stat.key async for stat in found}
