"""Ids: snowflakes for new things, derived ids for things with a cause.

A snowflake has 63 bits, so it is a positive bigint: 41 bits of milliseconds since 2024,
10 bits of worker id, 12 bits of sequence. A range of ids is a range of time.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Protocol

from blake3 import blake3

from streams.clock import Clock
from streams.errors import Refused, Unavailable

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
WORKER_BITS, SEQUENCE_BITS = 10, 12
TIME_SHIFT = WORKER_BITS + SEQUENCE_BITS
WORKERS = 1 << WORKER_BITS
MAX_ID = (1 << 63) - 1
BRIDGED_MS = 5_000

_SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
_LOW_MASK = (1 << TIME_SHIFT) - 1
_MAX_MS = (1 << 41) - 1
_MILLISECOND = timedelta(milliseconds=1)


class ClockWentBackwards(Unavailable):
    """This machine's clock is too far behind the last id it generated."""

    def __init__(self, behind_ms: int) -> None:
        super().__init__(
            f"this machine's clock is {behind_ms / 1000:.1f} s behind its last id, more than the "
            f"{BRIDGED_MS // 1000} s allowed; check NTP, or wait for it to catch up"
        )
        self.behind_ms = behind_ms


class ClockSkew(Refused):
    """This machine's clock and that of Postgres are too far apart to share ids."""

    def __init__(self, seconds: float, *, allowed: float) -> None:
        side = "ahead of" if seconds > 0 else "behind"
        super().__init__(
            f"this machine's clock is {abs(seconds):.1f} s {side} that of Postgres, "
            f"{allowed:.0f} s are allowed; fix NTP on whichever is wrong and start again"
        )
        self.seconds, self.allowed = seconds, allowed


class WorkerIdLost(Unavailable):
    """The lease of the worker id expired; another process may hold the id now."""

    dependency = "Postgres"

    def __init__(self, worker_id: int) -> None:
        super().__init__(
            f"the lease of worker id {worker_id} expired, so no ids can be generated; "
            "it is renewed when Postgres can be reached"
        )
        self.worker_id = worker_id


class WorkerIdLease(Protocol):
    """The right to use one worker id while the lease is valid.

    Two processes must never hold the same worker id at once: their ids would collide.
    """

    @property
    def worker_id(self) -> int:
        """The worker id, from 0 to 1023."""
        ...

    def valid(self) -> bool:
        """Return whether the lease is valid, by monotonic time."""
        ...


class FixedWorkerId:
    """A worker id whose uniqueness the caller guarantees."""

    def __init__(self, worker_id: int) -> None:
        self._worker_id = _checked_worker(worker_id)

    @property
    def worker_id(self) -> int:
        """The worker id."""
        return self._worker_id

    def valid(self) -> bool:
        """Return True: it never expires."""
        return True


class Snowflakes:
    """Generates increasing, unique ids; thread-safe."""

    def __init__(self, clock: Clock, lease: WorkerIdLease) -> None:
        self._clock, self._lease = clock, lease
        self._lock = threading.Lock()
        self._last_ms, self._sequence = -1, 0

    def next(self) -> int:
        """Return a new id.

        Raises:
            WorkerIdLost: the lease of the worker id expired.
            ClockWentBackwards: the clock was turned back by more than `BRIDGED_MS`.
        """
        return self.take(1)[0]

    def take(self, count: int) -> list[int]:
        """Return `count` new ids in increasing order.

        Raises:
            WorkerIdLost, ClockWentBackwards: as for `next`.
        """
        with self._lock:
            worker_id = self._lease.worker_id
            now_ms = self._now_ms()
            # Checked last, so that an id's time is never later than the check of its lease.
            # The lease may have been lost and another claimed since the worker id was read.
            if not self._lease.valid() or self._lease.worker_id != worker_id:
                raise WorkerIdLost(worker_id)
            if now_ms > self._last_ms:
                self._last_ms, self._sequence = now_ms, 0
            worker = _checked_worker(worker_id) << SEQUENCE_BITS
            if self._sequence + count <= _SEQUENCE_MASK:
                first = self._last_ms << TIME_SHIFT | worker | self._sequence
                self._sequence += count
                return list(range(first, first + count))
            return [self._step() | worker for _ in range(count)]

    def _now_ms(self) -> int:
        now_ms = _ms_since_epoch(self._clock.now())
        if not 0 <= now_ms <= _MAX_MS:
            raise ClockWentBackwards(-now_ms) if now_ms < 0 else OverflowError("ids end in 2093")
        if self._last_ms - now_ms > BRIDGED_MS:
            raise ClockWentBackwards(self._last_ms - now_ms)
        return now_ms

    def _step(self) -> int:
        """Advance the sequence; past its end, continue in the next millisecond."""
        if self._sequence > _SEQUENCE_MASK:
            self._last_ms, self._sequence = self._last_ms + 1, 0
        value = self._last_ms << TIME_SHIFT | self._sequence
        self._sequence += 1
        return value


def time_of(snowflake: int) -> datetime:
    """Return the time at which `snowflake` was generated."""
    return EPOCH + timedelta(milliseconds=snowflake >> TIME_SHIFT)


def worker_of(snowflake: int) -> int:
    """Return the worker id in `snowflake`."""
    return (snowflake >> SEQUENCE_BITS) & (WORKERS - 1)


def lowest_id_at(moment: datetime) -> int:
    """Return the lowest id that can be generated at `moment` or later; 0 before 2024.

    Ids of the time from a to b are in the range [lowest_id_at(a), lowest_id_at(b)).
    """
    since = _ms_since_epoch(moment, rounded_up=True)
    return min(max(since, 0) << TIME_SHIFT, MAX_ID)


def derive_id(cause: int, ordinal: int, purpose: str) -> int:
    """Return the id of the `ordinal`-th entity that `cause` creates for `purpose`.

    Deterministic and stable across versions: a repeated decision yields the same id.
    """
    return _digest(cause, ordinal, purpose) >> 1


def derive_root_id(cause: int, ordinal: int, purpose: str) -> int:
    """Return the id of a root created by `cause`, such as a child execution.

    It has the time of its cause, hence the same partition of the log. The ordinal is added
    to the hash, not hashed, so that children of one cause never collide.
    """
    low = (_digest(cause, 0, purpose) + ordinal) & _LOW_MASK
    return cause & ~_LOW_MASK & MAX_ID | low


def siblings_of(cause: int) -> tuple[int, int]:
    """Return the lowest and the highest id that `derive_root_id` can return for `cause`."""
    return cause & ~_LOW_MASK & MAX_ID, cause | _LOW_MASK


def _digest(cause: int, ordinal: int, purpose: str) -> int:
    text = f"{cause}/{ordinal}/{purpose}"
    return int.from_bytes(blake3(text.encode(), derive_key_context=_CONTEXT).digest(length=8))


_CONTEXT = "noetl streams 2026 derived ids"  # part of every derived id: never change it


def _ms_since_epoch(moment: datetime, *, rounded_up: bool = False) -> int:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone; give it UTC")
    since = moment - EPOCH
    return -(-since // _MILLISECOND) if rounded_up else since // _MILLISECOND


def _checked_worker(worker_id: int) -> int:
    if not 0 <= worker_id < WORKERS:
        raise ValueError(f"worker id {worker_id} is not between 0 and {WORKERS - 1}")
    return worker_id
