"""Lease on a frame or command: claimed by compare-and-swap, renewed by heartbeats, ended once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from types import TracebackType

from streams.errors import StreamsError, Unavailable
from streams.execution.attempts import AttemptEvent, FrameAttempt, FrameReport
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.log.errors import IdempotencyConflict, RootEnded, VersionConflict
from streams.log.port import AppendOutcome
from streams.retry import GiveUp, retry
from streams.worker.attempt.events import attempt_event, attempt_of
from streams.worker.options import Options, WorkerPorts

_log = logging.getLogger(__name__)
_LOST = (VersionConflict, RootEnded, IdempotencyConflict)
_RETRY_S = 1.0
_turns = count(1)


def _never(_: Unavailable, __: float) -> bool:
    return False


class LeaseLost(StreamsError):
    """Another worker may hold it now: this attempt must have no further effect."""


class AttemptLease:
    """One attempt's ownership. As a context manager, it cancels its body when the lease is lost.

    Times are monotonic and start before the request to the log, so the lease ends for its
    owner before it ends for the log. The event that ends the attempt is appended however late:
    the log refuses its version if another worker took over.
    """

    def __init__(self, item: WorkItem, ports: WorkerPorts, options: Options) -> None:
        self.item, self._log, self._clock, self._options = item, ports.log, ports.clock, options
        self._holds = ports.holds
        self.attempt = attempt_of(item, options.name)
        self.version = item.version
        self.claim_id: int | None = None
        # An item redelivered to this process is another turn, and loses to the first.
        self._turn = next(_turns)
        self.expires_at = self._claimed_at = 0.0
        self._owner: asyncio.Task[object] | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._beating: asyncio.Task[None] | None = None
        self._lost: str | None = None
        self._beat_at = 0.0
        self._is_unanswered = self._is_over = False
        self._is_held = False

    async def claim(self) -> bool:
        """Claim the item; False: another worker holds it, or it has ended."""
        try:
            await self._confirm(self.attempt.claimed(self._options.lease_s))
            while self._clock.monotonic() >= self.last_moment:
                # The log was away for longer than the lease: renew it before the work begins.
                await self._confirm(self.attempt.heartbeat(self._options.lease_s))
        except LeaseLost:
            return False
        self._claimed_at = self.expires_at - self._options.lease_s
        return True

    async def _confirm(self, event: AttemptEvent) -> None:
        """Append an event that starts the lease's time, retrying while the log is away."""
        sent: list[float] = []

        async def ask() -> AppendOutcome:
            sent.append(self._clock.monotonic())
            return await self._append(event)

        try:
            outcome = await retry(ask, holds=self._holds)
        except _LOST as error:
            raise LeaseLost(str(error)) from error
        # A duplicate was stored by our earlier try, and the lease began with that.
        began = sent[0] if outcome is AppendOutcome.DUPLICATE else sent[-1]
        self.expires_at = began + self._options.lease_s

    @property
    def last_moment(self) -> float:
        return self.expires_at - self._options.margin_s

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the log has not confirmed the lease for longer than a heartbeat takes."""
        confirmed_at = self.expires_at - self._options.lease_s
        return self._clock.monotonic() - confirmed_at > self._options.beat_s + _RETRY_S

    async def __aenter__(self) -> AttemptLease:
        self._owner, self._is_held = asyncio.current_task(), True
        self._arm()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._rest()
        if self._lost is not None and kind is asyncio.CancelledError and self._owner is not None:
            self._owner.uncancel()
            raise LeaseLost(self._lost) from error

    async def end(self, event: AttemptEvent) -> None:
        """Append the event that ends the attempt, waiting for the log if it is away.

        Raises:
            LeaseLost: another worker holds it.
        """
        await self._rest()
        if self._lost is not None:
            raise LeaseLost(self._lost)
        await self._append_last(event)

    async def checkpoint(self, report: FrameReport) -> None:
        """Store rows that are done, waiting for the log if it is away; this renews the lease.

        Raises:
            LeaseLost: another worker holds the frame.
        """
        await self._rest()
        if self._lost is not None:
            raise LeaseLost(self._lost)
        if not isinstance(self.attempt, FrameAttempt):
            raise BadWorkItem(f"{self.item.kind} {self.item.entity_id} is not a frame")
        await self._confirm(self.attempt.checkpoint(self._options.lease_s, report))
        self._is_held = True
        self._arm()

    async def hand_back(self) -> None:
        """Release the lease early; if that fails, it expires."""
        await self._rest()
        if self._lost is None:
            await self._release(lambda _, pause_s: self._is_last(pause_s))

    async def return_expired(self) -> None:
        """Release a lease that could not be renewed because the log was away, once it responds.

        The heartbeat without a response may have been stored: it is sent again, which yields
        the version. If the lease was ended meanwhile, the log refuses both.
        """
        if self._is_over:
            await self._release(_never, self.attempt.heartbeat(self._options.lease_s))

    async def _release(self, give_up: GiveUp, *before: AttemptEvent) -> None:
        try:
            for event in (*before, self.attempt.released()):
                await self._append_last(event, give_up)
        except (LeaseLost, Unavailable) as lost:
            _log.info("%s %s: not handed back: %s", self.item.kind, self.item.entity_id, lost)

    def _is_last(self, pause_s: float) -> bool:
        return self._clock.monotonic() + pause_s >= self.last_moment

    async def _append_last(self, event: AttemptEvent, give_up: GiveUp = _never) -> None:
        try:
            await retry(lambda: self._append(event), give_up=give_up, holds=self._holds)
        except _LOST as error:
            raise LeaseLost(str(error)) from error

    async def _append(self, event: AttemptEvent) -> AppendOutcome:
        now = self._clock.now()
        new = attempt_event(
            self.item,
            event,
            version=self.version,
            turn=self._turn,
            at=now,
            cause_id=self.claim_id or self.item.cause_id,
        )
        appended = (await self._log.append([new])).events[0]
        self.version, self.claim_id = appended.stream_version, self.claim_id or appended.event_id
        return appended.outcome

    def _arm(self) -> None:
        self._at("beat", self._options.beat_s, self._beat)
        self._at("end", self.last_moment - self._clock.monotonic(), self._expire)

    def _at(self, name: str, delay_s: float, call: Callable[[], None]) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(max(0.0, delay_s), call)

    def _beat(self) -> None:
        self._beating = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        sent = self._beat_at = self._clock.monotonic()
        if sent - self._claimed_at >= self._options.longest_s:
            self._lose(f"not done within {self._options.longest_s:.0f} s, assumed hung")
            return
        try:
            await self._append(self.attempt.heartbeat(self._options.lease_s))
        except _LOST as error:
            self._lose(str(error))
        except Unavailable as error:
            _log.warning("%s %s: no heartbeat: %s", self.item.kind, self.item.entity_id, error)
            self._is_unanswered = True
            self._at("beat", _RETRY_S, self._beat)
        else:
            self._is_unanswered = False
            self.expires_at = sent + self._options.lease_s
            self._arm()

    def _expire(self) -> None:
        waited_s = self._clock.monotonic() - self._beat_at
        is_waiting = self._beating is not None and not self._beating.done()
        if self._is_unanswered or (is_waiting and waited_s >= self._options.margin_s):
            self._is_over = self._lost is None
        self._lose("the lease expired and could not be renewed")

    def _lose(self, why: str) -> None:
        if self._lost is None:
            self._lost = why
            if self._is_held and self._owner is not None:
                self._owner.cancel()

    async def _rest(self) -> None:
        """Stop renewing; await a heartbeat in flight, because it changes the version."""
        self._is_held = False
        for timer in self._timers.values():
            timer.cancel()
        if self._beating is not None and not self._beating.done():
            await asyncio.wait({self._beating})
        for timer in self._timers.values():
            timer.cancel()
        if self._beating is not None and self._beating.done():
            error = None if self._beating.cancelled() else self._beating.exception()
            self._beating = None
            if error is not None:
                raise error
