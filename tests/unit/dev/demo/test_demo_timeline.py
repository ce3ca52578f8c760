"""What the demo's page is made of: bars from events, differences from two readings."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from streams.dev.bench.row_check import RowCheck
from streams.dev.demo.follow import ExecutionProgress
from streams.dev.demo.mirror_check import MirrorCheck, differences
from streams.dev.demo.page import write_page
from streams.dev.demo.run import DemoOutcome
from streams.dev.demo.timeline import lanes
from streams.events.model import Event
from tests.support.projector.executions import AT, Story, memory_log, stored_events


async def whole() -> list[Event]:
    """A loop of two frames, one of them in two attempts, and a command; a second an event."""
    log, story = memory_log(), Story(1000)
    for event in story.whole():
        await log.append([event])
    events = await stored_events(log, story.root)
    return [replace(one, ingest_time=AT + timedelta(seconds=one.seq)) for one in events]


def outcome(events: list[Event], *, missing: int = 0, faults: tuple[str, ...] = ()) -> DemoOutcome:
    end = ExecutionProgress("COMPLETED", None, len(events), ())
    judgement = RowCheck(expected=10, saved=10 - missing, missing=missing)
    return DemoOutcome(
        1000, end, judgement, 10, MirrorCheck(tuple(events), len(events), faults), 1.5
    )


async def test_each_step_has_a_lane_and_each_frame_a_bar() -> None:
    load, tell = lanes(await whole())

    assert (load.step, load.rows, load.failed_rows) == ("load", 10, 0)
    first, again = load.frames
    assert (first.begins_s, first.claimed_s, first.ends_s) == (4.0, 6.0, 8.0)
    assert (again.attempts, again.begins_s, again.claimed_s, again.ends_s) == (2, 5.0, 11.0, 12.0)
    assert load.took_s == 8.0
    assert (tell.step, tell.frames, len(tell.bars), tell.bars[0].what) == ("tell", (), 1, "noop")


async def test_what_has_not_ended_is_a_bar_without_an_end() -> None:
    (lane,) = lanes((await whole())[:7])

    assert [bar.ends_s for bar in lane.bars] == [None, None]
    assert lane.took_s == 0.0


async def test_the_same_events_differ_in_nothing() -> None:
    events = await whole()

    assert differences(events, events) == []


async def test_a_lost_a_swapped_and_an_altered_event_are_named() -> None:
    events = await whole()
    swapped = [events[1], events[0], *events[2:]]
    altered = [*events[:4], replace(events[4], checksum="00" * 32), *events[5:]]

    assert differences(events, events[:-1]) == ["mirror: Kafka has 18 events, the log has 19"]
    assert differences(events, swapped) == ["mirror: Kafka differs from the log"]
    assert differences(altered, altered) == ["log: event 5 breaks the chain"]


async def test_the_page_has_every_lane_and_every_event(tmp_path: Path) -> None:
    page, events = tmp_path / "demo.html", await whole()

    write_page(outcome(events), page)

    text = page.read_text("utf-8")
    assert text.count('class="lane"') == 2
    assert all(event.checksum[:12] in text for event in events)
    assert events[-1].chain in text
    assert "Something is wrong" not in text


async def test_the_page_says_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    bad = outcome(await whole(), missing=3, faults=("mirror: <it> differs",))

    write_page(bad, page)

    assert bad.faults == ("rows: 3 rows missing", "mirror: <it> differs")
    assert "rows: 3 rows missing" in page.read_text("utf-8")
    assert "mirror: &lt;it&gt; differs" in page.read_text("utf-8")
