"""The Kafka of a subscription: its own brokers, its credential's, or ours."""

from __future__ import annotations

from streams.catalog.subscription_state import SubscriptionState
from streams.credential.errors import BadCredential
from streams.credential.subscribed import SubscriptionSecrets
from streams.subscription.model import Subscription


async def brokers_of(
    state: SubscriptionState, subscription: Subscription, ours: str, secrets: SubscriptionSecrets
) -> str:
    """Return the bootstrap servers of a subscription's topic.

    Raises:
        Refused: its credential does not exist, cannot be decrypted, or names no brokers.
        Unavailable: the credential store does not respond.
    """
    assert subscription.kafka is not None
    if subscription.kafka.brokers is not None:
        return subscription.kafka.brokers
    if (name := subscription.credential) is None:
        return ours
    fields = await secrets.fields(state.scope, state.catalog_id, name)
    if not fields.get("brokers"):
        raise BadCredential(f"credential {name!r} has no field `brokers`; add it")
    if others := sorted(set(fields) - {"brokers"}):
        raise BadCredential(
            f"credential {name!r} has {', '.join(others)}, which a subscription cannot use: "
            "it connects without encryption or login; use a credential with `brokers` only"
        )
    return fields["brokers"]
