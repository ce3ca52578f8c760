"""The state of a subscription, folded from the events of its catalog root. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from streams.events.model import Event
from streams.events.types import (
    CatalogRegistered,
    CatalogRetired,
    SubscriptionPaused,
    SubscriptionReplayed,
    SubscriptionResumed,
    typed,
)
from streams.payload.port import Scope
from streams.subscription.model import KIND


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRange:
    """A range of records of one partition that starts executions once more."""

    number: int
    topic: str
    topic_id: str
    partition: int
    from_offset: int
    until_offset: int
    """Excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionState:
    """A subscription's newest version, and how it was steered."""

    catalog_id: int
    scope: Scope
    path: str
    version: int
    registered_at: datetime
    is_paused: bool = False
    is_retired: bool = False
    replays: tuple[ReplayRange, ...] = ()
    seq: int = 0
    """The last event of the root that is included."""

    @property
    def reader(self) -> str:
        """Its name in the trigger ledger."""
        return str(self.catalog_id)

    def replay_reader(self, replay: ReplayRange) -> str:
        """Return the name of a replay in the trigger ledger."""
        return f"{self.catalog_id}.{replay.number}"


def subscription_states(events: Iterable[Event]) -> list[SubscriptionState]:
    """Return the subscriptions that events of catalog roots declare, by path.

    The events of one root are in order; those of playbooks are ignored.
    """
    found: dict[int, SubscriptionState] = {}
    for event in events:
        state = _evolve(found.get(event.root.id), event)
        if state is not None:
            found[event.root.id] = replace(state, seq=event.seq)
    return sorted(found.values(), key=lambda one: (one.path, one.catalog_id))


def _evolve(state: SubscriptionState | None, event: Event) -> SubscriptionState | None:
    known = typed(event)
    if isinstance(known, CatalogRegistered):
        return _registered(state, known, event) if known.kind == KIND else None
    if state is None:
        return None
    match known:
        case SubscriptionPaused():
            return replace(state, is_paused=True)
        case SubscriptionResumed():
            return replace(state, is_paused=False)
        case CatalogRetired(version=version) if version == state.version:
            return replace(state, is_retired=True)
        case SubscriptionReplayed():
            return replace(state, replays=(*state.replays, _replay(known)))
    return state


def _registered(
    state: SubscriptionState | None, known: CatalogRegistered, event: Event
) -> SubscriptionState:
    if state is None:
        return SubscriptionState(
            catalog_id=event.root.id,
            scope=Scope(event.tenant_id, event.organization_id),
            path=known.path,
            version=known.version,
            registered_at=event.ingest_time,
        )
    return replace(state, version=known.version, registered_at=event.ingest_time, is_retired=False)


def _replay(known: SubscriptionReplayed) -> ReplayRange:
    return ReplayRange(
        number=known.replay,
        topic=known.topic,
        topic_id=known.topic_id,
        partition=known.partition,
        from_offset=known.from_offset,
        until_offset=known.until_offset,
    )
