"""Finds the execution that ends the planner, and leaves suspended ones alone."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from streams.errors import Inconsistent, Unavailable
from streams.events.model import Event
from streams.execution.suspension import AlreadySo, own_stream, suspended
from streams.log.errors import IdempotencyConflict, RootEnded, VersionConflict
from streams.planner.crash_journal import DEATHS, Blame
from streams.planner.draft import execution_root
from streams.planner.port import Ports

_log = logging.getLogger(__name__)
_TRIES = 8
_WAKING = frozenset(
    ("execution.resumed", "execution.cancelled", "playbook.completed", "playbook.failed")
)
Handle = Callable[[Sequence[int]], Awaitable[None]]


class Care:
    """Knows which executions are suspended, and suspends those that end the process.

    A suspended execution is not read, folded or decided on until an event wakes it: what is
    in its log may be what ends the planner.
    """

    def __init__(self, ports: Ports, name: str) -> None:
        self._ports, self._name = ports, name
        self._blame = Blame(ports.notes)
        self._since: dict[int, int] = {}

    def leave(self, execution_id: int, seq: int) -> None:
        """Note that an execution is suspended, with nothing more to learn up to `seq`."""
        self._since[execution_id] = seq

    def forget(self, execution_id: int) -> None:
        """Know nothing of it any more."""
        self._since.pop(execution_id, None)

    @property
    def suspended(self) -> frozenset[int]:
        """The executions that are left alone."""
        return frozenset(self._since)

    def has_seen(self, execution_id: int, seq: int) -> bool:
        """Say whether it is suspended, and was so after this event already."""
        return seq <= self._since.get(execution_id, 0)

    def wants(self, event: Event) -> bool:
        """Say whether to handle an event; one that wakes a suspended execution is wanted."""
        if event.root.id not in self._since:
            return True
        if event.type not in _WAKING:
            return False
        del self._since[event.root.id]
        return True

    async def each(self, kind: str, at: Mapping[int, str], handle: Handle) -> list[int]:
        """Handle executions so that each death is counted; `at` says of each what is done.

        Those that nobody suspects are handled together, suspects alone. Returns those that
        were not handled, because they ended the process too often and are suspended now.
        """
        aside: list[int] = []
        for ids in self._blame.groups(at):
            if self._blame.deaths(ids[0]) >= DEATHS:
                last = self._blame.last(ids[0])
                await self.suspend(ids[0], f"ended {self._name} {DEATHS} times: {last}")
                aside += ids
                continue
            self._blame.begin(kind, {key: at[key] for key in ids})
            try:
                await handle(ids)
            except Unavailable:
                self._blame.pause()  # no execution's fault
                raise
            self._blame.end(kind, ids)
        return aside

    async def suspend(self, execution_id: int, reason: str) -> None:
        """Let nothing more be decided in an execution until somebody resumes it.

        Raises:
            Unavailable: the log cannot be reached; asking again is safe.
        """
        _log.error("execution %d is suspended: it %s", execution_id, reason)
        seq = await self._suspended(execution_id, reason)
        self.leave(execution_id, seq)
        self._blame.absolve(execution_id)

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
                continue  # somebody was quicker: read again what is true now
            except (AlreadySo, RootEnded):
                return own[-1].seq
        raise Inconsistent(f"{root}: it cannot be suspended: somebody else keeps changing it")


def places(events: Mapping[int, Sequence[Event]]) -> dict[int, str]:
    """Say of each execution which event is handled, as the log names its place."""
    return {key: f"seq {told[-1].seq} ({told[-1].type})" for key, told in events.items()}


def all_as(text: str, execution_ids: Iterable[int]) -> dict[int, str]:
    """Say the same of each execution."""
    return dict.fromkeys(execution_ids, text)
