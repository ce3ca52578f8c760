"""Webhooks: requests that start executions through the trigger ledger."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streams.catalog.subscription_state import SubscriptionState
from streams.catalog.subscriptions import Subscriptions
from streams.credential.subscribed import SubscriptionSecrets
from streams.errors import Refused
from streams.events.model import Json
from streams.payload.port import Scope
from streams.subscription.bodies import BodyReader
from streams.subscription.errors import BadSubscription
from streams.subscription.interpret import Interpreted, MessageReader
from streams.subscription.message import RawHeaders
from streams.subscription.model import Subscription
from streams.subscription.verification import is_genuine, is_secret_header
from streams.trigger.entries import EntryFactory, EntryPorts, ReaderIdentity
from streams.trigger.port import LedgerEntry, Origin
from streams.trigger.subscriptions.port import SubscriptionLedger
from streams.trigger.subscriptions.requests import request_of
from streams.trigger.subscriptions.webhook_errors import (
    NoSuchWebhook,
    NotVerified,
    SecretUnavailable,
    SharedPath,
    WebhookPaused,
)
from streams.trigger.subscriptions.webhook_limits import WebhookLimits

_log = logging.getLogger(__name__)
KEY_HEADER, SECRET_FIELD = "idempotency-key", "secret"
_LANES = 1024
"""Concurrent starts: the ledger locks a partition while it enters its records."""
_Found = tuple[SubscriptionState, Subscription]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One request to a webhook."""

    path: str
    headers: RawHeaders
    query: Mapping[str, str]
    body: bytes

    def texts(self) -> dict[str, str]:
        """Return the headers by lower-case name."""
        return {
            name.lower(): (value or b"").decode("utf-8", "replace") for name, value in self.headers
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedDelivery:
    """The execution of a delivery; `is_new`: this request started it."""

    execution_id: int
    subscription: str
    is_new: bool


class WebhookReceiver:
    """Starts an execution for each verified request, once for each idempotency key."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        secrets: SubscriptionSecrets,
        ledger: SubscriptionLedger,
        entries: EntryPorts,
        bodies: BodyReader,
        *,
        inline_bytes: int,
    ) -> None:
        self._subscriptions, self._secrets, self._ledger = subscriptions, secrets, ledger
        self._take_ids, self._bodies = entries.take_ids, bodies
        self._entries, self._inline_bytes = entries, inline_bytes
        self._limits = WebhookLimits(ledger, entries.clock)
        self._webhooks: Mapping[tuple[Scope, str], Sequence[_Found]] = {}
        self._mark = -1

    async def receive(self, scope: Scope, delivery: Delivery) -> AcceptedDelivery:
        """Start the execution of a request; return once it is durable.

        Raises:
            NoSuchWebhook, SharedPath: no subscription, or several, have the path.
            NotVerified: its sender is not known.
            WebhookPaused, LimitReached: it may be sent again later.
            UnusableMessage, BadTrigger, BadEvent: it can never start its playbook.
            Unavailable: a dependency is down; sending it again is safe with a key.
        """
        state, subscription = await self._find(scope, delivery.path)
        await self._verify(state, subscription, delivery)
        if state.is_paused:
            raise WebhookPaused(state.path)
        (number,) = self._take_ids(1)
        found = await self._interpret(subscription, delivery, number)
        origin = Origin("http", number % _LANES, number, "http", state.reader)
        request = request_of(state, subscription, found)
        identity = ReaderIdentity(scope=state.scope, reader=state.reader)
        factory = EntryFactory(self._entries, identity, inline_bytes=self._inline_bytes)
        event = await factory.first_event(request, origin, {})
        await self._limits.admit(state, subscription)
        entry = LedgerEntry(origin, event, request.key, request.window_s)
        (entered,) = await self._ledger.enter([entry])
        assert entered.execution_id is not None
        return AcceptedDelivery(
            execution_id=entered.execution_id, subscription=state.path, is_new=entered.is_new
        )

    async def _find(self, scope: Scope, path: str) -> _Found:
        if (mark := await self._subscriptions.mark()) != self._mark:
            self._webhooks, self._mark = await self._all(), mark
        found = self._webhooks.get((scope, path), ())
        if len(found) > 1:
            raise SharedPath(path)
        if not found:
            raise NoSuchWebhook(path)
        return found[0]

    async def _all(self) -> dict[tuple[Scope, str], list[_Found]]:
        """Return the webhooks of every tenant by their paths."""
        found: dict[tuple[Scope, str], list[_Found]] = {}
        for state in await self._subscriptions.all():
            if state.is_retired:
                continue
            try:
                subscription = await self._subscriptions.document(state)
            except BadSubscription as error:
                _log.error("subscription %s is skipped: %s", state.path, error)
                continue
            if (ingress := subscription.ingress) is not None:
                found.setdefault((state.scope, ingress.path), []).append((state, subscription))
        return found

    async def _verify(
        self, state: SubscriptionState, subscription: Subscription, delivery: Delivery
    ) -> None:
        ingress = subscription.ingress
        assert ingress is not None
        try:
            fields = await self._secrets.fields(state.scope, state.catalog_id, ingress.secret)
        except Refused as error:
            # The sender is not known yet, and must not learn the names of credentials.
            _log.error("webhook %s cannot verify requests: %s", state.path, error)
            raise SecretUnavailable from error
        if not (secret := fields.get(SECRET_FIELD)):
            what = "webhook %s cannot verify requests: credential %r has no field `secret`"
            _log.error(what, state.path, ingress.secret)
            raise SecretUnavailable
        if not is_genuine(ingress, secret, delivery.texts(), delivery.body):
            raise NotVerified(ingress.header)

    async def _interpret(
        self, subscription: Subscription, delivery: Delivery, number: int
    ) -> Interpreted:
        """Interpret the request; its id is the key in `Idempotency-Key`, or a new one."""
        assert subscription.ingress is not None
        given = delivery.texts().get(KEY_HEADER)
        headers = [
            pair for pair in delivery.headers if not is_secret_header(subscription.ingress, pair[0])
        ]
        metadata: dict[str, Json] = {"path": delivery.path, "query": dict(delivery.query)}
        reader = MessageReader(subscription, self._bodies)
        found = await reader.message(given or str(number), delivery.body, headers, metadata)
        is_keyed = given or found.values.idempotency_key
        return found if is_keyed else replace(found, key=None)
