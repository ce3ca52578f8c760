"""State of recent roots, in memory; others are folded again from the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cachetools import FIFOCache

from streams.errors import Inconsistent
from streams.events.model import Event, Root
from streams.log.port import EventStore
from streams.projector.core import ChangedRows, View, absorb
from streams.projector.resources import Resource, absorb_resource
from streams.projector.rows import Changes
from streams.projector.snapshots import snapshot_of

logger = logging.getLogger(__name__)
REMEMBERED = 2000
ROOTS = ("execution", "catalog")
State: TypeAlias = View | Resource


@dataclass(frozen=True, slots=True)
class Folded:
    """Result of folding a batch: the rows to write, and the states to cache."""

    changes: Changes
    states: Mapping[Root, State]


class Views:
    """Folds events root by root, in order, tolerating reordering and redelivery.

    A root that is not cached, or has a gap, is read from the log. All rows of such a root are
    saved again: existing ones are not overwritten, and lost ones are restored.
    """

    def __init__(
        self, log: EventStore, *, remembered: int = REMEMBERED, snapshot_interval: int | None = None
    ) -> None:
        """`snapshot_interval`: events between two snapshots of an execution; None: no snapshots."""
        self._log, self._interval = log, snapshot_interval
        self._states: FIFOCache[Root, State] = FIFOCache(remembered)

    async def fold(self, roots: Mapping[Root, Sequence[Event]]) -> Folded:
        """Fold the events; states are cached only by `remember`.

        Raises:
            Unavailable: the log cannot be read; retrying is safe.
        """
        changes, states = Changes(), {}
        for root, events in roots.items():
            state = self._states.get(root) or _blank(root)
            try:
                states[root] = await self._absorb(root, state, events, changes)
            except Inconsistent:
                try:
                    states[root] = await self._absorb(root, _blank(root), events, changes)
                except Inconsistent as error:
                    # A broken root must not block the others.
                    logger.error("%s is not projected: %s", root, error)
        return Folded(changes, states)

    def remember(self, folded: Folded) -> None:
        """Cache the states, once their rows are saved; the oldest are evicted."""
        self._states.update(folded.states)

    async def _absorb(
        self, root: Root, state: State, events: Sequence[Event], changes: Changes
    ) -> State:
        changed = ChangedRows()
        for event in events:
            if event.seq > state.seq + 1:
                missing = self._log.read_root(root, after_seq=state.seq, through_seq=event.seq - 1)
                async for earlier in missing:
                    state = self._one(state, earlier, changed, changes)
            state = self._one(state, event, changed, changes)
        if isinstance(state, View):
            changes.add(changed.rows(state))
        return state

    def _one(self, state: State, event: Event, changed: ChangedRows, changes: Changes) -> State:
        if isinstance(state, View):
            view, touched = absorb(state, event)
            if view is not state:
                changed.add(touched, event.seq)
                if self._interval is not None and event.seq % self._interval == 0:
                    changes.add([snapshot_of(view, event)])
            return view
        resource, rows = absorb_resource(state, event)
        changes.add(rows)
        return resource


def by_root(events: Iterable[Event]) -> dict[Root, list[Event]]:
    """Group events by root, without roots that are not projected."""
    roots: dict[Root, list[Event]] = {}
    for event in events:
        if event.root.type in ROOTS:
            roots.setdefault(event.root, []).append(event)
    return roots


def _blank(root: Root) -> State:
    return View() if root.type == "execution" else Resource()
