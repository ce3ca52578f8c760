"""The state of recent roots, in memory; what is not there is folded again from the log."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

from streams.envelope.model import Event, Root
from streams.errors import Inconsistent
from streams.log.port import EventStore
from streams.projector.core import View, absorb
from streams.projector.resources import Resource, absorb_resource
from streams.projector.rows import Changes, Row

logger = logging.getLogger(__name__)
KEPT = 2000
ROOTS = ("execution", "catalog")
State: TypeAlias = View | Resource


class Views:
    """Folds events root by root, in order, whatever order and however often they arrive.

    A root it does not know, or of which it missed an event, is read from the log. All rows
    of an unknown root are offered again: those that the tables have are not written twice,
    and those that they lost come back.
    """

    def __init__(self, log: EventStore, *, kept: int = KEPT) -> None:
        self._log, self._kept = log, kept
        self._states: OrderedDict[Root, State] = OrderedDict()

    async def absorb(self, root: Root, events: Sequence[Event], changes: Changes) -> None:
        """Fold the events of one root and add the rows they changed.

        Raises:
            Unavailable: the log cannot be read; nothing was kept of this root.
        """
        state = self._states.pop(root, None) or _blank(root)
        try:
            state = await self._fold(root, state, events, changes)
        except Inconsistent:
            await self._start_over(root, events, changes)
        else:
            self._keep(root, state)

    async def _start_over(self, root: Root, events: Sequence[Event], changes: Changes) -> None:
        """Fold the root from its first event; one that cannot be folded holds up no other."""
        try:
            self._keep(root, await self._fold(root, _blank(root), events, changes))
        except Inconsistent as error:
            logger.error("%s is not shown: %s", root, error)

    async def _fold(
        self, root: Root, state: State, events: Sequence[Event], changes: Changes
    ) -> State:
        for event in events:
            if event.seq > state.seq + 1:
                missing = self._log.read_root(root, after_seq=state.seq, through_seq=event.seq - 1)
                async for earlier in missing:
                    state = _one(state, earlier, changes)
            state = _one(state, event, changes)
        return state

    def forget(self, root: Root) -> None:
        """Let go of a root's state."""
        self._states.pop(root, None)

    def _keep(self, root: Root, state: State) -> None:
        self._states[root] = state
        while len(self._states) > self._kept:
            self._states.popitem(last=False)


def _blank(root: Root) -> State:
    return View() if root.type == "execution" else Resource()


def _one(state: State, event: Event, changes: Changes) -> State:
    changed: State
    rows: tuple[Row, ...]
    if isinstance(state, View):
        changed, rows = absorb(state, event)
    else:
        changed, rows = absorb_resource(state, event)
    changes.add(rows)
    return changed
