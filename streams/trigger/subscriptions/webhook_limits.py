"""Limits of webhooks: requests above them are refused, since senders repeat them."""

from __future__ import annotations

import math

from streams.catalog.subscription_state import SubscriptionState
from streams.clock import Clock
from streams.subscription.model import Subscription
from streams.trigger.subscriptions.admission import TokenBucket
from streams.trigger.subscriptions.port import SubscriptionLedger
from streams.trigger.subscriptions.webhook_errors import LimitReached

_IN_FLIGHT_RETRY_S = 5


class WebhookLimits:
    """Counts the executions of webhooks; the rate is that of this process."""

    def __init__(self, ledger: SubscriptionLedger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._buckets: dict[int, tuple[int, TokenBucket]] = {}

    async def admit(self, state: SubscriptionState, subscription: Subscription) -> None:
        """Take the place of one execution.

        Raises:
            LimitReached: there is none.
            Unavailable: the database cannot be reached.
        """
        rate, most = subscription.max_per_second, subscription.max_in_flight
        bucket = None if rate is None else self._bucket(state, rate)
        if bucket is not None and not bucket.available():
            retry_s = max(1, math.ceil(bucket.wait_s))
            raise LimitReached("limits.max_dispatch_per_sec", rate or 0, retry_after_s=retry_s)
        if most is not None and await self._ledger.open_executions(state.reader, most) >= most:
            raise LimitReached("limits.max_in_flight", most, retry_after_s=_IN_FLIGHT_RETRY_S)
        if bucket is not None:
            bucket.take(1)

    def _bucket(self, state: SubscriptionState, rate: int) -> TokenBucket:
        known = self._buckets.get(state.catalog_id)
        if known is None or known[0] != rate:
            known = self._buckets[state.catalog_id] = (rate, TokenBucket(rate, self._clock))
        return known[1]
