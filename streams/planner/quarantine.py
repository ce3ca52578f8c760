"""Quarantine: suspends executions that crash the planner, and ignores suspended ones."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from streams.errors import Inconsistent, Unavailable
from streams.events.model import Event
from streams.events.types import (
    ExecutionCancelled,
    ExecutionResumed,
    PlaybookCompleted,
    PlaybookFailed,
)
from streams.execution.suspension import AlreadySo, own_stream, suspended
from streams.kafka.feed.crash_journal import DEATHS
from streams.log.errors import IdempotencyConflict, RootEnded, VersionConflict
from streams.planner.draft import execution_root
from streams.planner.execution_suspects import ExecutionSuspects
from streams.planner.port import PlannerPorts

_log = logging.getLogger(__name__)
_TRIES = 8
_WAKING = frozenset(
    (ExecutionResumed.TYPE, ExecutionCancelled.TYPE, PlaybookCompleted.TYPE, PlaybookFailed.TYPE)
)
Handle = Callable[[Sequence[int]], Awaitable[None]]


class Quarantine:
    """The suspended executions; those that crash the process too often are added.

    A suspended execution is not read, folded or decided until an event resumes it: its log may
    be what crashes the planner.
    """

    def __init__(self, ports: PlannerPorts, name: str) -> None:
        self._ports, self._name = ports, name
        self._suspects = ExecutionSuspects(ports.journal)
        self._since: dict[int, int] = {}

    def add(self, execution_id: int, seq: int) -> None:
        """Add an execution that is suspended; its events up to `seq` are known."""
        self._since[execution_id] = seq

    def remove(self, execution_id: int) -> None:
        """Remove an execution, suspended or not."""
        self._since.pop(execution_id, None)

    @property
    def suspended(self) -> frozenset[int]:
        """The executions in quarantine."""
        return frozenset(self._since)

    def has_seen(self, execution_id: int, seq: int) -> bool:
        """Return whether it was already suspended after this event."""
        return seq <= self._since.get(execution_id, 0)

    def accepts(self, event: Event) -> bool:
        """Return whether to handle an event; one that resumes an execution ends its quarantine."""
        if event.root.id not in self._since:
            return True
        if event.type not in _WAKING:
            return False
        del self._since[event.root.id]
        return True

    async def handle_each(
        self, activity: str, details: Mapping[int, str], handle: Handle
    ) -> list[int]:
        """Handle executions so that crashes are counted; `details` describes each one's part.

        Unsuspected executions are handled together, suspects alone. Returns those that were not
        handled, because they crashed the process too often and are suspended now.
        """
        suspended_now: list[int] = []
        for ids in self._suspects.groups(details):
            if self._suspects.deaths(ids[0]) >= DEATHS:
                last = self._suspects.last(ids[0])
                await self.suspend(ids[0], f"ended {self._name} {DEATHS} times: {last}")
                suspended_now += ids
                continue
            self._suspects.begin(activity, {key: details[key] for key in ids})
            try:
                await handle(ids)
            except Unavailable:
                self._suspects.pause()  # no execution's fault
                raise
            self._suspects.end(activity, ids)
        return suspended_now

    async def suspend(self, execution_id: int, reason: str) -> None:
        """Suspend an execution until it is resumed.

        Raises:
            Unavailable: the log cannot be reached; retrying is safe.
        """
        _log.error("execution %d is suspended: it %s", execution_id, reason)
        seq = await self._suspended(execution_id, reason)
        self.add(execution_id, seq)
        self._suspects.clear(execution_id)

    async def _suspended(self, execution_id: int, reason: str) -> int:
        root = execution_root(execution_id)
        for _ in range(_TRIES):
            own = [one async for one in self._ports.store.read_stream(root, own_stream(root))]
            if not own:
                return 0  # the log has no such execution
            now = self._ports.clock.now()
            try:
                event = suspended(own, by=self._name, reason=reason, now=now)
                return (await self._ports.store.append([event])).events[0].seq
            except (VersionConflict, IdempotencyConflict):
                continue  # another process appended first: read again
            except (AlreadySo, RootEnded):
                return own[-1].seq
        raise Inconsistent(f"{root} cannot be suspended: its stream changes at every attempt")


def last_events(events: Mapping[int, Sequence[Event]]) -> dict[int, str]:
    """Return for each execution a description of its last event."""
    return {key: f"seq {new[-1].seq} ({new[-1].type})" for key, new in events.items()}


def all_as(text: str, execution_ids: Iterable[int]) -> dict[int, str]:
    """Return the same description for all executions."""
    return dict.fromkeys(execution_ids, text)
