"""Benchmark of replay: executions of several lengths, folded from the log again.

Every envelope's checksum and every link of the chain is verified, and the code that folds is
the projector's. Each replay runs in its own process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streams.app import Log, open_log
from streams.app.log import open_pool
from streams.dev.bench.replay_fill import fill, fold_live
from streams.dev.bench.replay_plot import replay_plot
from streams.dev.bench.replay_process import ReplayTask, ReplayTime, replay_apart
from streams.dev.bench.report import BenchReport, Figure, per_second
from streams.dev.scratch_database import scratch_database
from streams.payload.port import Scope
from streams.projector.postgres import PostgresProjections
from streams.settings import Settings

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTimes:
    """One log, replayed from its begin and from its newest snapshot."""

    length: int
    full: ReplayTime
    snapshot: ReplayTime
    live_checksum: str
    """The checksum of the live fold."""


async def bench_replay(
    settings: Settings, *, lengths: Sequence[int], plot: Path | None, say: Say
) -> BenchReport:
    """Fill a log of each length in a database of its own, and replay it; write the plot."""
    async with scratch_database(settings) as own:
        times = [await _times(own, length, say) for length in sorted(set(lengths))]
    if plot is not None:
        _draw(times, plot)
        say(f"wrote {plot}")
    interval = settings.event_store.replay.snapshot_interval_events
    return BenchReport(_figures(times, interval), tuple(_faults(times, interval)))


def _draw(times: Sequence[LengthTimes], plot: Path) -> None:
    points = [(one.length, one.full.seconds, one.snapshot.seconds) for one in times]
    plot.write_text(replay_plot(points), "utf-8")


async def _times(settings: Settings, length: int, say: Say) -> LengthTimes:
    runtime = settings.runtime
    scope = Scope(runtime.tenant_id, runtime.organization_id)
    database = settings.event_store.canonical_connection
    interval = settings.event_store.replay.snapshot_interval_events
    say(f"{length} events of one execution are appended")
    async with (
        open_log(settings, role="bench") as log,
        open_pool(database.dsn("project"), limit_s=runtime.call_limit_s) as pool,
    ):
        execution_id = await fill(log, scope, length)
        live = await fold_live(log, PostgresProjections(pool), execution_id, length, interval)
        task = _task(settings, log, scope, execution_id)
    full = await asyncio.to_thread(replay_apart, task)
    rate = per_second(full.events_read, full.seconds)
    say(f"replayed in {full.seconds:.2f} s, {rate:,} events/s")
    snapshot = await asyncio.to_thread(replay_apart, replace(task, use_snapshots=True))
    say(f"with snapshots in {snapshot.seconds:.2f} s, {snapshot.events_read} events read")
    return LengthTimes(length=length, full=full, snapshot=snapshot, live_checksum=live)


def _task(settings: Settings, log: Log, scope: Scope, execution_id: int) -> ReplayTask:
    return ReplayTask(
        dsn=settings.event_store.canonical_connection.dsn("read"),
        limit_s=settings.runtime.call_limit_s,
        schema_id=log.codec.schema_id,
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        execution_id=execution_id,
        use_snapshots=False,
    )


def _figures(times: Sequence[LengthTimes], interval: int) -> dict[str, Figure]:
    longest = times[-1]
    shortest = next((one for one in times if one.length >= interval), times[0])
    peaks = {str(one.length): one.full.peak_rss_mb for one in times}
    return {
        "events_per_s": per_second(longest.full.events_read, longest.full.seconds),
        "cpu_us_per_event": round(1e6 * longest.full.cpu_s / longest.full.events_read, 2),
        "full_s": {str(one.length): round(one.full.seconds, 3) for one in times},
        "snapshot_s": {str(one.length): round(one.snapshot.seconds, 3) for one in times},
        "snapshot_events_read": {str(one.length): one.snapshot.events_read for one in times},
        "snapshot_ratio": round(longest.snapshot.seconds / shortest.snapshot.seconds, 2),
        "peak_rss_mb": peaks,
        "peak_rss_ratio": round(longest.full.peak_rss_mb / shortest.full.peak_rss_mb, 2),
        "checksums_equal": sum(_is_equal(one) for one in times),
        "lengths": len(times),
    }


def _is_equal(times: LengthTimes) -> bool:
    return times.full.checksum == times.snapshot.checksum == times.live_checksum


def _faults(times: Sequence[LengthTimes], interval: int) -> Iterator[str]:
    for one in times:
        where = f"{one.length} events"
        if not _is_equal(one):
            found = (one.live_checksum, one.full.checksum, one.snapshot.checksum)
            yield f"{where}: live, full and from a snapshot differ: {' '.join(found)}"
        if one.full.events_read != one.length or one.snapshot.seq != one.length:
            yield f"{where}: {one.full.events_read} were replayed, up to {one.snapshot.seq}"
        if one.snapshot.events_read > interval:
            yield f"{where}: no snapshot was used, {one.snapshot.events_read} events were read"
