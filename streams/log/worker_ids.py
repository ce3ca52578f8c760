"""Leases of worker ids, kept in Postgres: the adapter behind `WorkerIdLease`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import asyncpg

from streams.clock import Clock
from streams.errors import Unavailable
from streams.ids import ClockSkew, WorkerIdLost
from streams.log.errors import LogUnavailable
from streams.postgres import CONNECTION_LOST, translated

LEASE_SECONDS = 60
ALLOWED_SKEW = timedelta(seconds=5)
_log = logging.getLogger(__name__)


class NoWorkerIdFree(Unavailable):
    """As many processes give ids as there are worker ids."""

    def __init__(self, said: str) -> None:
        super().__init__(f"{said}; stop processes that are not needed, or wait and start again")


class LeasedWorkerId:
    """One worker id, ours by lease until its time runs out.

    The deadline counts monotonic time from before the lease was asked for, so it always
    ends here before it ends in Postgres.
    """

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, holder: str, *, lease_seconds: int = LEASE_SECONDS
    ) -> None:
        self._pool, self._clock, self._holder = pool, clock, holder
        self._lease_seconds = lease_seconds
        self._worker_id: int | None = None
        self._ends_at = float("-inf")

    @property
    def worker_id(self) -> int:
        """The worker id that was claimed."""
        assert self._worker_id is not None, "claim() comes first"
        return self._worker_id

    def valid(self) -> bool:
        """Say whether the lease has time left."""
        return self._clock.monotonic() < self._ends_at

    async def claim(self) -> None:
        """Take a worker id that nobody holds.

        Raises:
            NoWorkerIdFree: all 1024 are taken.
            ClockSkew: this machine's clock is too far from that of Postgres.
            LogUnavailable: Postgres cannot be reached.
        """
        try:
            await self._ask(
                "SELECT * FROM noetl.claim_worker_id($1, $2)", self._holder, self._lease_seconds
            )
        except ClockSkew:
            await self.release()
            raise

    async def renew(self) -> None:
        """Prolong the lease.

        Raises:
            WorkerIdLost: another process has the worker id now.
            ClockSkew, LogUnavailable: as for `claim`.
        """
        await self._ask(
            "SELECT * FROM noetl.renew_worker_id($1, $2, $3)",
            self.worker_id,
            self._holder,
            self._lease_seconds,
        )

    async def release(self) -> None:
        """Give the worker id back; without Postgres, its lease simply runs out."""
        self._ends_at = float("-inf")
        with suppress(*CONNECTION_LOST):
            await self._pool.execute(
                "SELECT noetl.release_worker_id($1, $2)", self._worker_id, self._holder
            )

    async def _ask(self, query: str, *arguments: object) -> None:
        """Put the question and take the answer as the new lease."""
        asked_at, started_at = self._clock.now(), self._clock.monotonic()
        with translated(LogUnavailable, "lease worker ids", refused=_none_free):
            row: asyncpg.Record | None = await self._pool.fetchrow(query, *arguments)
        if row is None:
            self._ends_at = float("-inf")
            raise WorkerIdLost(self.worker_id)
        self._worker_id = row["worker_id"]
        try:
            check_skew(asked_at, row["db_time"], self._clock.now())
        except ClockSkew:
            self._ends_at = float("-inf")  # no more ids from a clock that is wrong
            raise
        self._ends_at = started_at + self._lease_seconds


def _none_free(error: asyncpg.PostgresError) -> NoWorkerIdFree | None:
    full = isinstance(error, asyncpg.ConfigurationLimitExceededError)
    return NoWorkerIdFree(str(error)) if full else None


def check_skew(asked_at: datetime, db_time: datetime, answered_at: datetime) -> None:
    """Refuse a clock that must be off, however long question and answer travelled.

    Raises:
        ClockSkew: the clocks are more than 5 s apart.
    """
    ahead, behind = asked_at - db_time, db_time - answered_at
    if max(ahead, behind) > ALLOWED_SKEW:
        seconds = ahead.total_seconds() if ahead > behind else -behind.total_seconds()
        raise ClockSkew(seconds, allowed=ALLOWED_SKEW.total_seconds())


@asynccontextmanager
async def hold_worker_id(
    pool: asyncpg.Pool, clock: Clock, holder: str, *, lease_seconds: int = LEASE_SECONDS
) -> AsyncIterator[LeasedWorkerId]:
    """Hold a worker id for as long as the body runs, renewing it three times a lease.

    `holder` must name this process and no other, also not an earlier one of the same
    name. What goes wrong meanwhile stops ids, not the body: they go on once Postgres is
    back, the clock is right, or another worker id could be claimed.
    """
    lease = LeasedWorkerId(pool, clock, holder, lease_seconds=lease_seconds)
    await lease.claim()
    renewing = asyncio.create_task(_keep(lease, every_seconds=lease_seconds / 3))
    try:
        yield lease
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
        await lease.release()


async def _keep(lease: LeasedWorkerId, every_seconds: float) -> None:
    wait_seconds = every_seconds
    while True:
        await asyncio.sleep(wait_seconds)
        try:
            await _renew_or_claim(lease)
            wait_seconds = every_seconds
        except (LogUnavailable, NoWorkerIdFree, ClockSkew) as error:
            _log.warning("worker id %d not renewed, trying again: %s", lease.worker_id, error)
            wait_seconds = min(1.0, every_seconds)


async def _renew_or_claim(lease: LeasedWorkerId) -> None:
    try:
        await lease.renew()
    except WorkerIdLost as error:
        _log.warning("%s; claiming another", error)
        await lease.claim()
