"""Worker id leases in Postgres: an adapter of `WorkerIdLease`."""

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
    """All worker ids are leased."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}; stop processes that are not needed, or retry later")


class LeasedWorkerId:
    """A leased worker id.

    The deadline counts monotonic time from before the request, so the lease always expires
    here before it expires in Postgres.
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
        """The claimed worker id."""
        assert self._worker_id is not None, "call claim() first"
        return self._worker_id

    def valid(self) -> bool:
        """Return whether the lease has not expired."""
        return self._clock.monotonic() < self._ends_at

    async def claim(self) -> None:
        """Claim a free worker id.

        Raises:
            NoWorkerIdFree: all 1024 are taken.
            ClockSkew: this machine's clock is too far from that of Postgres.
            LogUnavailable: Postgres cannot be reached.
        """
        try:
            await self._query_lease(
                "SELECT * FROM noetl.claim_worker_id($1, $2)", self._holder, self._lease_seconds
            )
        except ClockSkew:
            await self.release()
            raise

    async def renew(self) -> None:
        """Renew the lease.

        Raises:
            WorkerIdLost: another process has the worker id now.
            ClockSkew, LogUnavailable: as for `claim`.
        """
        await self._query_lease(
            "SELECT * FROM noetl.renew_worker_id($1, $2, $3)",
            self.worker_id,
            self._holder,
            self._lease_seconds,
        )

    async def release(self) -> None:
        """Release the worker id; without Postgres, its lease expires."""
        self._ends_at = float("-inf")
        with suppress(*CONNECTION_LOST):
            await self._pool.execute(
                "SELECT noetl.release_worker_id($1, $2)", self._worker_id, self._holder
            )

    async def _query_lease(self, query: str, *arguments: object) -> None:
        """Run the query and store the returned lease."""
        sent_at, started_at = self._clock.now(), self._clock.monotonic()
        with translated(LogUnavailable, "lease worker ids", refused=_none_free):
            row: asyncpg.Record | None = await self._pool.fetchrow(query, *arguments)
        if row is None:
            self._ends_at = float("-inf")
            raise WorkerIdLost(self.worker_id)
        self._worker_id = row["worker_id"]
        try:
            check_skew(sent_at, row["db_time"], self._clock.now())
        except ClockSkew:
            self._ends_at = float("-inf")  # generate no ids with a wrong clock
            raise
        self._ends_at = started_at + self._lease_seconds


def _none_free(error: asyncpg.PostgresError) -> NoWorkerIdFree | None:
    full = isinstance(error, asyncpg.ConfigurationLimitExceededError)
    return NoWorkerIdFree(str(error)) if full else None


def check_skew(sent_at: datetime, db_time: datetime, received_at: datetime) -> None:
    """Reject a clock whose error exceeds any network delay of the request.

    Raises:
        ClockSkew: the clocks are more than 5 s apart.
    """
    ahead, behind = sent_at - db_time, db_time - received_at
    if max(ahead, behind) > ALLOWED_SKEW:
        seconds = ahead.total_seconds() if ahead > behind else -behind.total_seconds()
        raise ClockSkew(seconds, allowed=ALLOWED_SKEW.total_seconds())


@asynccontextmanager
async def hold_worker_id(
    pool: asyncpg.Pool, clock: Clock, holder: str, *, lease_seconds: int = LEASE_SECONDS
) -> AsyncIterator[LeasedWorkerId]:
    """Hold a worker id while the body runs, renewing it three times per lease.

    `holder` must be unique to this process, also across restarts. Failures stop id
    generation, not the body: it continues once Postgres is back, the clock is right, or
    another worker id is claimed.
    """
    lease = LeasedWorkerId(pool, clock, holder, lease_seconds=lease_seconds)
    await lease.claim()
    renewing = asyncio.create_task(_renew_loop(lease, every_seconds=lease_seconds / 3))
    try:
        yield lease
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
        await lease.release()


async def _renew_loop(lease: LeasedWorkerId, every_seconds: float) -> None:
    wait_seconds = every_seconds
    while True:
        await asyncio.sleep(wait_seconds)
        try:
            await _renew_or_claim(lease)
            wait_seconds = every_seconds
        except (LogUnavailable, NoWorkerIdFree, ClockSkew) as error:
            _log.warning("worker id %d not renewed, retrying: %s", lease.worker_id, error)
            wait_seconds = min(1.0, every_seconds)


async def _renew_or_claim(lease: LeasedWorkerId) -> None:
    try:
        await lease.renew()
    except WorkerIdLost as error:
        _log.warning("%s; claiming another", error)
        await lease.claim()
