"""The collector by itself: it ends results often, and sweeps the objects seldom."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta

from streams.collector.collect import CollectionReport, collect, end_results
from streams.collector.errors import CollectorBusy
from streams.collector.port import CollectorPorts
from streams.errors import StreamsError

RETRY_S = 3600.0
"""How long a sweep waits after one that failed: it reads the whole log before it can say why."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Rounds:
    """Does what is due, again and again; what fails is said and tried again.

    A round opens its ports and closes them, so that it finds Postgres wherever it went. When
    the last sweep was is in the database: a restart does not put it off, and it is one for all.
    """

    open_ports: Callable[[], AbstractAsyncContextManager[CollectorPorts]]
    end_every_s: float
    sweep_every_s: float
    retention: timedelta | None
    monotonic: Callable[[], float]
    _sweep_from: float = float("-inf")
    """After a sweep that failed: when another may be tried."""
    _look_at: float = float("-inf")
    """When a sweep may be due, as far as the last round knows."""

    async def run(self, stop: asyncio.Event) -> None:
        """Make rounds until stopped; one that is under way is broken off, which harms none."""
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set() and (self.end_every_s or self.sweep_every_s):
                going = asyncio.create_task(self.once())
                await asyncio.wait({going, stopping}, return_when=asyncio.FIRST_COMPLETED)
                going.cancel()
                await asyncio.gather(going, return_exceptions=True)
                await asyncio.wait({stopping}, timeout=self._pause_s)
            await stopping
        finally:
            stopping.cancel()

    async def once(self) -> None:
        """Make one round."""
        sweeping = False
        try:
            async with self.open_ports() as ports:
                sweeping = await self._sweep_is_due(ports)
                if sweeping:
                    _tell(await collect(ports, retention=self.retention))
                    self._look_in(self.sweep_every_s)
                elif self.end_every_s and (ended := await end_results(ports)):
                    _log.info("results ended: %s", _counted(ended))
        except CollectorBusy as error:
            self._look_in(RETRY_S)
            _log.info("%s", error)
        except StreamsError as error:
            self._failed(sweeping)
            _log.error("the collector could not do its round: %s", error)
        except Exception:  # noqa: BLE001 - a bug in one round must not end those after it
            self._failed(sweeping)
            _log.exception("the collector could not do its round, of a bug")

    @property
    def _pause_s(self) -> float:
        """Seconds until the next round: to end results, or because a sweep may be due."""
        until_sweep = max(self._look_at - self.monotonic(), 0.0)
        waits = ((self.end_every_s, self.end_every_s), (self.sweep_every_s, until_sweep))
        return min(wait for every, wait in waits if every)

    def _look_in(self, seconds: float) -> None:
        self._look_at = self.monotonic() + min(seconds, self.sweep_every_s)

    async def _sweep_is_due(self, ports: CollectorPorts) -> bool:
        if not self.sweep_every_s or self.monotonic() < self._sweep_from:
            return False
        age = await ports.ledger.swept_ago()
        if age is None or age >= timedelta(seconds=self.sweep_every_s):
            return True
        self._look_in(self.sweep_every_s - age.total_seconds())
        return False

    def _failed(self, sweeping: bool) -> None:
        self._look_in(RETRY_S)
        if sweeping:
            self._sweep_from = self._look_at


def _tell(report: CollectionReport) -> None:
    _log.info(
        "swept %s objects: %s live; %s to the trash, %s brought back, %s deleted (%s bytes); "
        "results ended: %s",
        f"{report.objects:,}",
        f"{report.live:,}",
        f"{report.trashed:,}",
        f"{report.restored:,}",
        f"{report.purged:,}",
        f"{report.purged_bytes:,}",
        _counted(report.expired),
    )
    for what, keys in (("damaged", report.unreadable), ("missing", report.dangling)):
        if keys:
            _log.error(
                "%s live payloads are %s, such as %s; restore them from a backup of the bucket "
                "(`streams payloads report`)",
                report.dangling_count if what == "missing" else len(keys),
                what,
                keys[0],
            )


def _counted(ended: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in ended.items()) or "none"
