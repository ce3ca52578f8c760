"""Work that waits for a pool: the unconsumed items of its topic, as the log knows them now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from streams.kafka.work.item import WorkItem

ENDED, WAITING, RUNNING = "ended", "waiting", "running"
_WAITING = frozenset(
    (
        *("frame.dispatched", "frame.lease_expired", "frame.released", "frame.failed"),
        *("command.issued", "command.lease_expired", "command.released"),
    )
)
_RUNNING = frozenset(
    (
        *("frame.claimed", "frame.heartbeat"),
        *("command.claimed", "command.started", "command.heartbeat"),
    )
)


@dataclass(frozen=True, slots=True)
class ItemState:
    """What the log says about a work item."""

    last_event: str
    caused_at: datetime
    """When the event was appended that caused the item's dispatch."""
    is_open: bool
    """Whether its execution has not ended."""

    @property
    def state(self) -> str:
        """`waiting`, `running` or `ended`."""
        if not self.is_open:
            return ENDED
        if self.last_event in _RUNNING:
            return RUNNING
        return WAITING if self.last_event in _WAITING else ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkBacklog:
    """Work of a pool that is not finished."""

    pool: str
    frames_waiting: int = 0
    commands_waiting: int = 0
    rows_waiting: int = 0
    """Of the waiting frames; a frame of a cursor counts with its size, the most it can have."""
    running: int = 0
    oldest_waiting: datetime | None = None
    oldest_running: datetime | None = None
    is_whole: bool = True
    """False if there are more items than were read."""


def backlog_of(
    pool: str,
    items: Iterable[WorkItem],
    states: Mapping[int, ItemState],
    *,
    is_whole: bool = True,
) -> WorkBacklog:
    """Count items by the state of their frame or command; a repeated item counts once."""
    waiting: dict[int, WorkItem] = {}
    running: set[int] = set()
    for item in items:
        state = states.get(item.entity_id)
        if state is not None and state.state == WAITING:
            waiting[item.entity_id] = item
        elif state is not None and state.state == RUNNING:
            running.add(item.entity_id)
    frames = [item for item in waiting.values() if item.kind == "frame"]
    return WorkBacklog(
        pool=pool,
        frames_waiting=len(frames),
        commands_waiting=len(waiting) - len(frames),
        rows_waiting=sum(map(rows_of, frames)),
        running=len(running),
        oldest_waiting=min((states[one].caused_at for one in waiting), default=None),
        oldest_running=min((states[one].caused_at for one in running), default=None),
        is_whole=is_whole,
    )


def rows_of(item: WorkItem) -> int:
    """Return the rows of a frame: of its window, else the most that its policy allows."""
    cursor = item.cursor or {}
    first, end = cursor.get("from"), cursor.get("to")
    if isinstance(first, int) and isinstance(end, int):
        return max(0, end - first)
    size = (item.policy or {}).get("size")
    return size if isinstance(size, int) else 1
