"""What the commands of `streams subscription` read and write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streams.cli.output import settings_of

if TYPE_CHECKING:
    from streams.catalog.catalog import Catalog
    from streams.catalog.subscription_state import SubscriptionState
    from streams.catalog.subscriptions import Subscriptions
    from streams.credential.subscribed import SubscriptionSecrets
    from streams.payload.port import Scope
    from streams.settings import Settings
    from streams.subscription.model import Subscription
    from streams.trigger.lookup import LedgerReader
    from streams.trigger.subscriptions.standing import PartitionLag, SubscribedTopicReader


@dataclass(frozen=True, slots=True)
class SubscriptionAccess:
    """The subscriptions of the settings' scope."""

    settings: Settings
    scope: Scope
    catalog: Catalog
    subscriptions: Subscriptions
    ledger: LedgerReader
    secrets: SubscriptionSecrets

    async def register(self, text: str) -> dict[str, object]:
        """Register one document."""
        made = await self.catalog.register(self.scope, text)
        return {
            "path": made.path,
            "version": made.version,
            "catalog_id": str(made.catalog_id),
            "is_new": made.is_new,
        }

    async def rows(self) -> list[dict[str, object]]:
        """Return a row for each subscription."""
        states = await self.subscriptions.list(self.scope)
        return [_row(one, await self.subscriptions.document(one)) for one in states]

    async def show(self, path: str) -> tuple[dict[str, object], list[PartitionLag], str]:
        """Return a subscription's row, the lag of its partitions, and its content."""
        state = await self.subscriptions.find(self.scope, path)
        document = await self.subscriptions.document(state)
        content = await self.catalog.content(state.catalog_id, state.version)
        lags: list[PartitionLag] = []
        if document.kafka is not None:
            lags = await (await self.topic(state, document)).lags(state, self.ledger)
        return _row(state, document), lags, content

    async def steer(self, path: str, what: str, by: str | None) -> dict[str, object]:
        """Pause or resume a subscription."""
        steer = self.subscriptions.pause if what == "pause" else self.subscriptions.resume
        state = await steer(self.scope, path, by=by)
        return _row(state, await self.subscriptions.document(state))

    async def replay(
        self,
        path: str,
        from_offset: int,
        partitions: Sequence[int],
        by: str | None,
        *,
        dry_run: bool,
    ) -> list[dict[str, object]]:
        """Request replays, one for each partition."""
        from streams.trigger.subscriptions.standing import BadReplay

        state = await self.subscriptions.find(self.scope, path)
        document = await self.subscriptions.document(state)
        if document.kafka is None:
            raise BadReplay(f"{path}: a webhook has no records to replay")
        topic = await self.topic(state, document)
        wanted = await topic.replays(state, self.ledger, from_offset, partitions)
        if not dry_run:
            for one in wanted:
                await self.subscriptions.replay(self.scope, path, one, by=by)
        return [asdict(one) for one in wanted]

    async def topic(
        self, state: SubscriptionState, document: Subscription
    ) -> SubscribedTopicReader:
        """Return the reader of a subscription's topic."""
        from streams.clock import SystemClock
        from streams.trigger.subscriptions.brokers import brokers_of
        from streams.trigger.subscriptions.standing import SubscribedTopicReader

        assert document.kafka is not None
        ours = self.settings.event_store.connection.url
        brokers = await brokers_of(state, document, ours, self.secrets)
        return SubscribedTopicReader(brokers, document.kafka, SystemClock())


@asynccontextmanager
async def subscription_access(
    file: Path | None, data: Path | None
) -> AsyncIterator[SubscriptionAccess]:
    """Open the catalog and the ledger."""
    from streams.app import (
        catalog_of,
        open_log,
        open_payloads,
        subscription_secrets_of,
        subscriptions_of,
    )
    from streams.payload.port import Scope
    from streams.trigger.lookup import LedgerReader

    settings = settings_of(file, data)
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_log(settings, role="api", lanes=1) as log, open_payloads(settings) as payloads:
        catalog, ledger = catalog_of(log, payloads), LedgerReader(log.pool)
        subscriptions = subscriptions_of(log, payloads)
        secrets = subscription_secrets_of(log, settings)
        yield SubscriptionAccess(settings, scope, catalog, subscriptions, ledger, secrets)


def _row(state: SubscriptionState, document: Subscription) -> dict[str, object]:
    if document.kafka is not None:
        reads = f"kafka {document.kafka.topic} as {document.kafka.group}"
    else:
        reads = f"webhook {document.ingress.path if document.ingress else ''}"
    return {
        "path": state.path,
        "version": state.version,
        "catalog_id": str(state.catalog_id),
        "registered_at": state.registered_at,
        "state": "paused" if state.is_paused else "active",
        "source": str(document.source),
        "reads": reads,
        "playbook": document.dispatch.playbook,
        "replays": [asdict(one) for one in state.replays],
    }
