"""States of recent executions, in memory; others are folded again from the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cachetools import FIFOCache

from streams.errors import Inconsistent
from streams.events.model import Event, Root
from streams.facts.audit import audit_facts
from streams.facts.core import FactState, absorb
from streams.facts.model import Fact
from streams.log.port import EventStore

logger = logging.getLogger(__name__)
REMEMBERED = 2000
ROOTS = ("execution", "catalog", "credential", "trigger")
"""The types of root that have facts."""


@dataclass(frozen=True, slots=True)
class FoldedFacts:
    """Result of folding events: the last value of each fact, and the states to cache."""

    facts: Mapping[tuple[str, str], Fact]
    """By the kind's name and the key."""
    states: Mapping[Root, FactState]


class FactViews:
    """Folds events root by root, tolerating redelivery and gaps.

    An execution that is not cached is read from the log. The facts of those earlier events were
    published before; a rebuild restores lost ones.
    """

    def __init__(self, log: EventStore, *, remembered: int = REMEMBERED) -> None:
        self._log = log
        self._states: FIFOCache[Root, FactState] = FIFOCache(remembered)

    async def fold(self, events: Iterable[Event]) -> FoldedFacts:
        """Fold events, those of a root in order; states are cached only by `remember`.

        Raises:
            Unavailable: the log cannot be read; retrying is safe.
        """
        facts: dict[tuple[str, str], Fact] = {}
        states: dict[Root, FactState] = {}
        broken: set[Root] = set()
        for event in events:
            if event.root in broken:
                continue
            if event.root.type != "execution":
                _add(facts, audit_facts(event))
                continue
            state = states.get(event.root) or self._states.get(event.root) or FactState()
            try:
                states[event.root] = await self._absorb(state, event, facts)
            except Inconsistent as error:
                # A broken root must not block the others.
                logger.error("%s has no facts: %s", event.root, error)
                broken.add(event.root)
        return FoldedFacts(facts, states)

    def remember(self, folded: FoldedFacts) -> None:
        """Cache the states, once their facts are published; the oldest are evicted."""
        self._states.update(folded.states)

    async def _absorb(
        self, state: FactState, event: Event, facts: dict[tuple[str, str], Fact]
    ) -> FactState:
        if event.seq > state.seq + 1:
            is_known = state.seq > 0
            missing = self._log.read_root(
                event.root, after_seq=state.seq, through_seq=event.seq - 1
            )
            async for earlier in missing:
                state, changed = absorb(state, earlier)
                if is_known:
                    _add(facts, changed)
        state, changed = absorb(state, event)
        _add(facts, changed)
        return state


def _add(facts: dict[tuple[str, str], Fact], changed: Iterable[Fact]) -> None:
    for fact in changed:
        facts[fact.NAME, fact.key] = fact
