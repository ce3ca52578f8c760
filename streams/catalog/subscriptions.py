"""Subscriptions in the catalog: which there are, and their steering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streams.catalog.catalog import Catalog
from streams.catalog.errors import UnknownPath
from streams.catalog.port import CatalogEvents, SubscriptionEvents
from streams.catalog.subscription_state import ReplayRange, SubscriptionState, subscription_states
from streams.clock import Clock
from streams.errors import Refused
from streams.events.model import NewEvent, Root
from streams.events.types import SubscriptionPaused, SubscriptionReplayed, SubscriptionResumed
from streams.log.port import EventStore
from streams.payload.port import Scope
from streams.subscription.model import KIND, Subscription
from streams.subscription.parse import parse_subscription

_Steering = SubscriptionPaused | SubscriptionResumed | SubscriptionReplayed


class NotSteered(Refused):
    """The subscription is already so."""


class Subscriptions:
    """Reads and steers the subscriptions of a log."""

    def __init__(
        self,
        store: EventStore,
        events: CatalogEvents,
        all_events: SubscriptionEvents,
        catalog: Catalog,
        clock: Clock,
    ) -> None:
        self._store, self._events, self._all = store, events, all_events
        self._catalog, self._clock = catalog, clock
        self._compiled: dict[tuple[int, int], Subscription] = {}

    async def mark(self) -> int:
        """Return a number that changes with every event of a subscription.

        Raises:
            Unavailable: the log cannot be reached.
        """
        return await self._all.mark()

    async def all(self) -> Sequence[SubscriptionState]:
        """Return every tenant's subscriptions.

        Raises:
            Unavailable: the log cannot be reached.
        """
        return subscription_states(await self._all.all())

    async def list(self, scope: Scope) -> Sequence[SubscriptionState]:
        """Return the subscriptions of a scope, by path."""
        return subscription_states(await self._events.of_scope(scope))

    async def find(self, scope: Scope, path: str) -> SubscriptionState:
        """Return the subscription of a path.

        Raises:
            UnknownPath: there is none.
            Unavailable: the log cannot be reached.
        """
        found = subscription_states(await self._events.of_path(scope, path))
        if not found:
            raise UnknownPath(path, [one.path for one in await self.list(scope)], KIND)
        return found[0]

    async def document(self, state: SubscriptionState) -> Subscription:
        """Return the compiled newest version, under its path in the catalog; cached.

        Raises:
            BadSubscription: the registered content no longer parses.
            Unavailable: the log or the payload store cannot be reached.
        """
        key = (state.catalog_id, state.version)
        if key not in self._compiled:
            content = await self._catalog.content(*key)
            name = f"{state.path} version {state.version}"
            self._compiled[key] = replace(parse_subscription(content, name), path=state.path)
        return self._compiled[key]

    async def pause(self, scope: Scope, path: str, *, by: str | None = None) -> SubscriptionState:
        """Stop starting executions; raises NotSteered if it is paused already."""
        return await self._steer(scope, path, SubscriptionPaused(path=path, by=by))

    async def resume(self, scope: Scope, path: str, *, by: str | None = None) -> SubscriptionState:
        """Go on where it was paused; raises NotSteered if it is not paused."""
        return await self._steer(scope, path, SubscriptionResumed(path=path, by=by))

    async def replay(
        self, scope: Scope, path: str, wanted: ReplayRange, *, by: str | None = None
    ) -> SubscriptionState:
        """Have a range of records start executions once more; `wanted.number` is ignored."""
        event = SubscriptionReplayed(
            path=path,
            replay=0,
            topic=wanted.topic,
            topic_id=wanted.topic_id,
            partition=wanted.partition,
            from_offset=wanted.from_offset,
            until_offset=wanted.until_offset,
            by=by,
        )
        return await self._steer(scope, path, event)

    async def _steer(self, scope: Scope, path: str, event: _Steering) -> SubscriptionState:
        async with self._events.lock(scope, path):
            state = await self.find(scope, path)
            if isinstance(event, SubscriptionReplayed):
                event = replace(event, replay=len(state.replays) + 1)
            elif state.is_paused == isinstance(event, SubscriptionPaused):
                now = "paused already" if state.is_paused else "not paused"
                raise NotSteered(f"{path}: the subscription is {now}")
            await self._store.append([self._event(scope, state, event)])
        return await self.find(scope, path)

    def _event(self, scope: Scope, state: SubscriptionState, event: _Steering) -> NewEvent:
        return NewEvent(
            root=Root("catalog", state.catalog_id),
            tenant_id=scope.tenant_id,
            organization_id=scope.organization_id,
            idempotency_key=f"{event.TYPE}/{state.seq + 1}",
            event_time=self._clock.now(),
            **event.columns(),
        )
