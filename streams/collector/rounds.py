"""The collector's schedule: frequent expiry of results, infrequent sweeps of objects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta

from streams.collector.collect import GRACE, CollectionReport, collect, end_results
from streams.collector.errors import CollectorBusy
from streams.collector.port import CollectorPorts
from streams.errors import StreamsError

RETRY_S = 3600.0
"""Pause after a failed sweep: each one scans the whole log."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Rounds:
    """Runs expiry and sweeps when due; failures are logged and retried.

    Each round opens and closes its ports, so that it survives a failover of Postgres. The time
    of the last sweep is in the database, shared by all collectors and across restarts.
    """

    open_ports: Callable[[], AbstractAsyncContextManager[CollectorPorts]]
    end_every_s: float
    sweep_every_s: float
    retention: timedelta | None
    monotonic: Callable[[], float]
    scope_grace: timedelta = GRACE
    """How long results outlive the execution they are scoped to."""
    _sweep_from: float = float("-inf")
    """Earliest time of the next sweep after one that failed."""
    _next_check_at: float = float("-inf")
    """When to check again whether a sweep is due."""

    async def run(self, stop: asyncio.Event) -> None:
        """Run rounds until stopped; a running round is cancelled, which is safe."""
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set() and (self.end_every_s or self.sweep_every_s):
                round_task = asyncio.create_task(self.once())
                await asyncio.wait({round_task, stopping}, return_when=asyncio.FIRST_COMPLETED)
                round_task.cancel()
                await asyncio.gather(round_task, return_exceptions=True)
                await asyncio.wait({stopping}, timeout=self._pause_s)
            await stopping
        finally:
            stopping.cancel()

    async def once(self) -> None:
        """Run one round."""
        sweeping = False
        try:
            async with self.open_ports() as ports:
                sweeping = await self._sweep_is_due(ports)
                if sweeping:
                    _log_report(await self._sweep(ports))
                    self._check_in(self.sweep_every_s)
                elif self.end_every_s and (ended := await self._end(ports)):
                    _log.info("expired results: %s", _counted(ended))
        except CollectorBusy as error:
            self._check_in(RETRY_S)
            _log.info("%s", error)
        except StreamsError as error:
            self._failed(sweeping)
            _log.error("the collector's round failed: %s", error)
        except Exception:  # noqa: BLE001 - a bug in one round must not stop later ones
            self._failed(sweeping)
            _log.exception("the collector's round failed: bug")

    async def _sweep(self, ports: CollectorPorts) -> CollectionReport:
        return await collect(ports, retention=self.retention, scope_grace=self.scope_grace)

    async def _end(self, ports: CollectorPorts) -> dict[str, int]:
        return await end_results(ports, grace=self.scope_grace)

    @property
    def _pause_s(self) -> float:
        """Seconds until the next expiry, or until a sweep may be due."""
        until_sweep = max(self._next_check_at - self.monotonic(), 0.0)
        waits = ((self.end_every_s, self.end_every_s), (self.sweep_every_s, until_sweep))
        return min(wait for every, wait in waits if every)

    def _check_in(self, seconds: float) -> None:
        self._next_check_at = self.monotonic() + min(seconds, self.sweep_every_s)

    async def _sweep_is_due(self, ports: CollectorPorts) -> bool:
        if not self.sweep_every_s or self.monotonic() < self._sweep_from:
            return False
        age = await ports.ledger.swept_ago()
        if age is None or age >= timedelta(seconds=self.sweep_every_s):
            return True
        self._check_in(self.sweep_every_s - age.total_seconds())
        return False

    def _failed(self, sweeping: bool) -> None:
        self._check_in(RETRY_S)
        if sweeping:
            self._sweep_from = self._next_check_at


def _log_report(report: CollectionReport) -> None:
    _log.info(
        "swept %s objects: %s live; %s trashed, %s restored, %s deleted (%s bytes); "
        "expired results: %s",
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
