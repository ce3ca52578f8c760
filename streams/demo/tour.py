"""Append, mirror, read back, compare: the tour itself."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from streams.app import Log, open_log
from streams.demo.story import Story
from streams.envelope.model import Event, NewEvent, Root
from streams.errors import Inconsistent
from streams.mirror.consumer import Reader
from streams.mirror.watermark import Watermark
from streams.settings import Settings

TOPIC = "noetl.events.execution"
Progress = Callable[[str, int, int], None]
"""Gets a phase's name, how much is done, and how much there is."""


class DemoFailed(Inconsistent):
    """What came back is not what was appended."""


@dataclass(frozen=True, slots=True)
class Tour:
    """What the tour did, and what it found when it looked."""

    events: tuple[Event, ...]
    """As read back from Kafka, by execution and place."""
    executions: int
    append_s: float
    mirrored_after_ms: float
    duplicates_ignored: int
    verified: int


async def run_tour(settings: Settings, *, executions: int, frames: int, progress: Progress) -> Tour:
    """Run a few executions through the log and its mirror, and check every event.

    Raises:
        DemoFailed: something came back other than it was appended.
    """
    bootstrap = settings.event_store.connection.url
    append_dsn = settings.event_store.canonical_connection.dsn("append")
    async with (
        open_log(settings, role="demo") as log,
        Watermark(append_dsn, bootstrap) as watermark,
        Reader(bootstrap, [TOPIC], start="end") as reader,
    ):
        runtime = settings.runtime
        stories = [
            Story(runtime.tenant_id, runtime.organization_id, log.ids.next)
            for _ in range(executions)
        ]
        started = time.perf_counter()
        appended = await _append(log, stories, frames, progress)
        append_s = time.perf_counter() - started
        mirrored = await watermark.round_trip()
        duplicates = await _append_again(log, stories[0])
        events, verified = await _read_back(log, reader, stories, appended, progress)
    _check_chains(events, stories)
    return Tour(tuple(events), executions, append_s, mirrored * 1000, duplicates, verified)


async def _append(log: Log, stories: list[Story], frames: int, progress: Progress) -> int:
    told = [list(story.batches(frames)) for story in stories]
    total = sum(len(batch) for batches in told for batch in batches)
    done = 0

    async def tell(batches: list[list[NewEvent]]) -> None:
        nonlocal done
        for batch in batches:
            await log.store.append(batch)
            done += len(batch)
            progress("appended to the log", done, total)

    await asyncio.gather(*map(tell, told))
    return total


async def _append_again(log: Log, story: Story) -> int:
    """Say the same thing twice, as a retrying caller would; return how often it was ignored."""
    first = next(iter(story.batches(0)))
    receipt = await log.store.append(first)
    return sum(1 for event in receipt.events if event.outcome == "duplicate")


async def _read_back(
    log: Log, reader: Reader, stories: list[Story], expected: int, progress: Progress
) -> tuple[list[Event], int]:
    roots = {story.root for story in stories}
    events: list[Event] = []
    verified = 0
    deadline = time.monotonic() + 30
    while len(events) < expected and time.monotonic() < deadline:
        for record in await reader.batch():
            event = await record.event(log.codec)
            if event.root in roots:
                events.append(event)
                verified += log.codec.verify(record.value or b"")
        progress("read back from Kafka", len(events), expected)
    for root in roots:
        in_log = [event async for event in log.store.read_root(root)]
        if in_log != events_of(events, root):
            raise DemoFailed(f"{root}: what Kafka has is not what the log has")
    return events, verified


def events_of(events: list[Event], root: Root) -> list[Event]:
    """Return a root's events in the order in which they came."""
    return [event for event in events if event.root == root]


def _check_chains(events: list[Event], stories: list[Story]) -> None:
    for story in stories:
        chain = bytes(32)
        for place, event in enumerate(events_of(events, story.root), start=1):
            chain = hashlib.sha256(chain + bytes.fromhex(event.checksum)).digest()
            if (event.seq, event.chain) != (place, chain.hex()):
                raise DemoFailed(f"{story.root}: event {place} breaks the chain")
