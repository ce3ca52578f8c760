"""A role's process as a Faust application: agents on real topics, timers, one way to fail.

See docs/decisions/0012-faust.md.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from streams.kafka.feed.consumption import Consumption, WatchedFeed
from streams.kafka.feed.crash_journal import JournalFile
from streams.kafka.feed.group_samples import group_samples
from streams.kafka.feed.port import Standing
from streams.kafka.feed.process import Agent, RoleProcess
from streams.kafka.feed.topics import TopicFeed, started
from streams.kafka.transport.app import Application
from streams.kafka.transport.health import Health, add_metrics_page, add_pages
from streams.metrics.exposition import RoleMetrics

START_S = 120.0
STOP_S = 15.0


class FaustProcess(RoleProcess):
    """One role's process; its agents are registered with its Faust application."""

    def __init__(self, app: Application, folder: Path) -> None:
        super().__init__(lambda name: JournalFile(folder / f"{name}.journal"))
        self.app = app
        self._feed: TopicFeed | None = None
        self._is_standalone = app.started
        """Whether Faust's own command starts and stops the application."""
        app.on_failure = self.fail
        add_pages(app, self._health)

    def fail(self, reason: BaseException) -> None:
        """End the process with this error; nothing is committed from now on."""
        super().fail(reason)
        if self.app.started:
            self.app.consumer.readings.freeze()

    def expose(self, metrics: RoleMetrics) -> None:
        """Serve the process's metrics, with those of its consumer."""
        metrics.add(lambda: group_samples(self._health(), self.app.rebalancing_count))
        add_metrics_page(self.app, metrics)

    def _health(self) -> Health:
        member, feed, away = self.app.membership, self._feed, sorted(self.holds.away)
        is_assigned = self.app.started and not self.app.rebalancing and not self.app.in_recovery
        standing = feed.standing() if is_assigned and feed is not None else Standing(0, 0)
        return Health(
            group=member.group,
            instance=member.instance,
            is_ready=is_assigned and not away,
            away=away,
            partitions=len(feed.partitions) if is_assigned and feed is not None else 0,
            behind=standing.behind,
            finished=standing.progress,
        )

    async def _open(self) -> None:
        assert self._feed is not None, "an agent is attached first"
        if self._is_standalone:
            return
        await started(self.app, self._feed, within_s=START_S)

    def _start(self, agent: Agent, feed: WatchedFeed, consumption: Consumption) -> None:
        assert isinstance(feed, TopicFeed)
        assert self._feed is None, "an application has one agent"
        self._feed = feed

        async def consume(stream: Any) -> None:
            await agent.consume(feed.batches(stream, consumption.prepare))

        async def watch_rebalances() -> None:
            await feed.watch_rebalances(consumption.prepare)

        self.app.bind(self.guarded(consume))
        self.add_work(watch_rebalances)

    async def _close(self, *, has_failed: bool) -> None:
        """Stop Faust, which commits; after a failure nothing is stopped, nor committed.

        What was not acknowledged is delivered again, and Faust's own shutdown may hang then.
        """
        if has_failed:
            self.app.consumer.readings.freeze()
            return
        if self._is_standalone:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self.app.stop()
