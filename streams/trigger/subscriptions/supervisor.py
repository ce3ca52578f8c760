"""Runs a consumer for each subscription that is registered and not paused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial

from streams.catalog.subscription_state import ReplayRange, SubscriptionState
from streams.catalog.subscriptions import Subscriptions
from streams.retry import retry
from streams.subscription.errors import BadSubscription
from streams.subscription.model import Subscription

_log = logging.getLogger(__name__)
POLL_S = 2.0
"""How soon a registration, a pause or a replay is noticed."""
Consume = Callable[[SubscriptionState, Subscription], Coroutine[None, None, None]]
"""Consumes a subscription until it is cancelled."""
RunReplay = Callable[[SubscriptionState, Subscription, ReplayRange], Coroutine[None, None, None]]
"""Runs a replay to its end."""


class SubscriptionSupervisor:
    """Starts and stops consumers as the catalog changes."""

    def __init__(
        self, subscriptions: Subscriptions, consume: Consume, run_replay: RunReplay
    ) -> None:
        self._subscriptions, self._consume, self._run_replay = subscriptions, consume, run_replay
        self._running: dict[str, asyncio.Task[None]] = {}
        self._mark = -1

    async def run(self) -> None:
        """Supervise until cancelled.

        Raises:
            Exception: a consumer failed; the process should end.
        """
        try:
            while True:
                await retry(self.tick)
                await self._pause()
        finally:
            await self._stop(list(self._running))

    async def tick(self) -> None:
        """Start and stop consumers if the catalog changed.

        Raises:
            Unavailable: the log cannot be reached; retrying is safe.
        """
        mark = await self._subscriptions.mark()
        if mark == self._mark:
            return
        wanted = await self._wanted()
        await self._stop([name for name in self._running if name not in wanted])
        for name, work in wanted.items():
            if name not in self._running:
                self._running[name] = asyncio.create_task(work(), name=f"subscription {name}")
        self._mark = mark

    @property
    def running(self) -> frozenset[str]:
        """The names of what runs: catalog id, version, and the number of a replay."""
        return frozenset(self._running)

    async def _wanted(self) -> Mapping[str, Callable[[], Coroutine[None, None, None]]]:
        found: dict[str, Callable[[], Coroutine[None, None, None]]] = {}
        for state in await self._subscriptions.all():
            if state.is_paused or state.is_retired:
                continue
            try:
                document = await self._subscriptions.document(state)
            except BadSubscription as error:
                _log.error("subscription %s is skipped: %s", state.path, error)
                continue
            if document.kafka is None:
                continue
            name = f"{state.catalog_id}@{state.version}"
            found[name] = partial(self._consume, state, document)
            for replay in state.replays:
                run = partial(self._run_replay, state, document, replay)
                found[f"{name}.{replay.number}"] = run
        return found

    async def _pause(self) -> None:
        """Wait for the next look at the catalog, or for a consumer's failure."""
        tasks = [task for task in self._running.values() if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=POLL_S, return_when=asyncio.FIRST_EXCEPTION)
        else:
            await asyncio.sleep(POLL_S)
        for task in self._running.values():
            if task.done():
                task.result()

    async def _stop(self, names: list[str]) -> None:
        tasks = [self._running.pop(name) for name in names]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
