"""Comparison of a sink with the log, by tenant and event type."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from streams.analytics.counts import (
    Counts,
    counts_of_log,
    counts_of_table,
    differences,
    last_position,
    log_database,
)
from streams.analytics.errors import SinkDiffers
from streams.analytics.lake import counts_of_lake
from streams.analytics.sinks import AnalyticsSink
from streams.settings import Settings

_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Verified:
    """A sink that equals the log up to a position."""

    sink: str
    position: int
    counts: Counts

    @property
    def rows_count(self) -> int:
        """The number of rows."""
        return sum(self.counts.values())


async def verify_sink(
    settings: Settings, sink: AnalyticsSink, *, within_s: float = 60.0
) -> Verified:
    """Return once the sink has the rows of everything that is in the log now.

    Raises:
        SinkDiffers: it has not after `within_s`.
        SinkUnavailable: its store, or the log, does not answer.
    """
    deadline = time.monotonic() + within_s
    async with log_database(settings) as log:
        position = await last_position(log)
        while True:
            # Counted again: a transaction may commit positions below the last one later.
            expected = await counts_of_log(log, position)
            found = await counts_of_sink(settings, sink, position)
            if not (wrong := differences(expected, found)):
                return Verified(sink.name, position, found)
            if time.monotonic() > deadline:
                raise SinkDiffers(sink.name, wrong)
            await asyncio.sleep(_PAUSE_S)


async def counts_of_sink(settings: Settings, sink: AnalyticsSink, until: int) -> Counts:
    """Count the rows of a sink up to a position of the log."""
    if sink.is_lake:
        return await counts_of_lake(settings, until)
    return await counts_of_table(settings, until)
