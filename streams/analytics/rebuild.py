"""Rebuild of a sink from the beginning of its topics.

The connector is stopped while its rows and its offsets are deleted, so that a crash after any
step is harmless: running it again starts over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from streams.analytics.counts import empty_table
from streams.analytics.errors import SinkStalled, TopicsTrimmed
from streams.analytics.lag import LagReader, SinkLag
from streams.analytics.lake import drop_table
from streams.analytics.sinks import AnalyticsSink
from streams.analytics.verify import Verified, verify_sink
from streams.errors import Refused
from streams.mirror.connect import ConnectClient
from streams.resources import folder
from streams.settings import Settings
from streams.topology import load
from streams.topology.broker import TopicAdmin

Report = Callable[[str], None]
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class SinkRebuilt:
    """The outcome of a rebuild."""

    verified: Verified
    seconds: float


async def rebuild_sink(
    settings: Settings,
    sink: AnalyticsSink,
    report: Report,
    *,
    keep_rows: bool = False,
    stall_s: float = 120.0,
) -> SinkRebuilt:
    """Delete a sink's rows and let it read everything again; return when it equals the log.

    Raises:
        TopicsTrimmed: the topics lack old events; nothing was changed.
        SinkStalled: it makes no progress for `stall_s`.
        SinkDiffers: it has read everything, but its rows are not those of the log.
    """
    began = time.monotonic()
    lags = LagReader(settings.event_store.connection.url)
    await check_rebuild(lags, sink, keep_rows=keep_rows)
    async with ConnectClient(settings.connect.url) as connect:
        report("stopping the sink")
        await connect.apply(sink.name, sink.connector.config)
        await connect.stop(sink.name)
        await connect.wait_until_stopped(sink.name)
        if not keep_rows:
            report("deleting its rows")
            await _delete_rows(settings, sink)
        report("deleting its offsets")
        await connect.delete_offsets(sink.name)
        report("starting the sink")
        await connect.resume(sink.name)
        await connect.wait_until_running(sink.name)
        await caught_up(lags, sink, report, stall_s=stall_s)
    verified = await verify_sink(settings, sink, within_s=stall_s)
    return SinkRebuilt(verified, time.monotonic() - began)


async def _delete_rows(settings: Settings, sink: AnalyticsSink) -> None:
    if not sink.is_lake:
        await empty_table(settings)
        return
    await drop_table(settings)
    # Files that the stopped sink wrote and did not commit are announced on its control topic;
    # they would be added to the new table.
    broker, topology = TopicAdmin(settings.event_store.connection.url), load(folder("topics"))
    await asyncio.to_thread(broker.delete, sink.control)
    await asyncio.to_thread(lambda: broker.apply(topology.at(broker.profile())))


async def check_rebuild(lags: LagReader, sink: AnalyticsSink, *, keep_rows: bool) -> SinkLag:
    """Return the sink's lag if its topics still have every event, or no row is to be deleted.

    Raises:
        TopicsTrimmed: rows would be lost.
        Refused: the rows of a sink that appends cannot be kept.
    """
    if keep_rows and sink.is_lake:
        raise Refused(
            f"sink {sink.name} appends: --keep-rows would write every row a second time; "
            "rebuild it without"
        )
    lag = await asyncio.to_thread(lags.read, sink)
    if lag.trimmed and not keep_rows:
        raise TopicsTrimmed(sink.name, lag.trimmed)
    return lag


async def caught_up(
    lags: LagReader, sink: AnalyticsSink, report: Report, *, stall_s: float = 120.0
) -> SinkLag:
    """Return once the sink has read its topics to their ends.

    Raises:
        SinkStalled: its lag does not shrink for `stall_s`.
    """
    least: int | None = None
    moved_at = time.monotonic()
    while True:
        lag = await asyncio.to_thread(lags.read, sink)
        if lag.behind == 0:
            return lag
        if least is None or lag.behind < least:
            least, moved_at = lag.behind, time.monotonic()
            report(f"{lag.behind:,} offsets behind")
        if time.monotonic() - moved_at > stall_s:
            raise SinkStalled(
                f"sink {sink.name} makes no progress, {lag.behind:,} offsets behind after "
                f"{stall_s:.0f} s; see `streams connectors status {sink.name}`"
            )
        await asyncio.sleep(_PAUSE_S)
