"""Dependencies of the API's handlers, and the scope of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web

from streams.api.errors import NotFound
from streams.api.port import Head, ProjectionReader
from streams.catalog.catalog import Catalog
from streams.clock import Clock
from streams.credential.keys import Keys
from streams.credential.port import CredentialStore
from streams.credential.resolve import Resolver
from streams.events.locator import Locator
from streams.events.model import Root
from streams.events.seal import INLINE_MAX_BYTES
from streams.log.port import EventStore
from streams.payload.port import PayloadStore, Scope
from streams.projector.business.reading import BusinessQueries
from streams.replay.business import BusinessReplay
from streams.replay.fork.forks import Forks
from streams.replay.organization import OrganizationReplay
from streams.replay.state import Replay
from streams.trigger.port import TriggerLedger
from streams.trigger.subscriptions.webhook import WebhookReceiver

TENANT_HEADER, ORGANIZATION_HEADER = "Noetl-Tenant", "Noetl-Organization"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRuntime:
    """The ports of one API process."""

    log: EventStore
    projections: ProjectionReader
    ledger: TriggerLedger
    catalog: Catalog
    payloads: PayloadStore
    replay: Replay
    organizations: OrganizationReplay
    business_replay: BusinessReplay
    business: BusinessQueries
    forks: Forks
    next_id: Callable[[], int]
    clock: Clock
    scope: Scope
    """The scope of requests without tenant headers."""
    credentials: CredentialStore
    keys: Keys
    resolver: Resolver
    webhooks: WebhookReceiver
    configured_credentials: frozenset[str] = frozenset()
    """Credentials in the deployment's settings, which tasks use instead of stored ones."""
    worker_token: str | None = field(default=None, repr=False)
    """The token that workers send to resolve secrets; None disables resolving."""
    operator_token: str | None = field(default=None, repr=False)
    """The token of operators; None: nobody may replay an organization."""
    lease_seconds: int = 60
    inline_bytes: int = INLINE_MAX_BYTES
    """Largest data that an event written here carries inline."""

    def scope_of(self, request: web.Request) -> Scope:
        """Return the scope of a request.

        Raises:
            BadLocator: a header is not a valid tenant or organization.
        """
        found = Scope(
            request.headers.get(TENANT_HEADER, self.scope.tenant_id),
            request.headers.get(ORGANIZATION_HEADER, self.scope.organization_id),
        )
        Locator(found.tenant_id, found.organization_id)
        return found

    async def head(self, request: web.Request, execution_id: int) -> Head:
        """Return the head of an execution in the log.

        Raises:
            NotFound: there is none in the caller's scope.
        """
        head = await self.projections.head(Root("execution", execution_id))
        if head is None or head.scope != self.scope_of(request):
            raise NotFound("execution", execution_id)
        return head


Handler: TypeAlias = Callable[[ApiRuntime, web.Request], Awaitable[web.StreamResponse]]
RUNTIME = web.AppKey("runtime", ApiRuntime)
