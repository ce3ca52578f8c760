"""Wiring of adapters to ports, from the settings."""

from streams.app.credentials import (
    credentials_of,
    keys_of,
    providers_of,
    subscription_secrets_of,
    worker_token_of,
)
from streams.app.fork import forks_of
from streams.app.log import (
    Log,
    catalog_of,
    open_log,
    open_pool,
    open_registry,
    producer,
    subscriptions_of,
    trigger_ledger_of,
)
from streams.app.payloads import open_collector, open_copies, open_tiers, sharing_terms
from streams.app.replay import open_replay, replay_of
from streams.app.roles import NODE_ROLES, ROLES
from streams.payload.objects.open import open_payloads, open_shelves

__all__ = [
    "NODE_ROLES",
    "ROLES",
    "Log",
    "catalog_of",
    "credentials_of",
    "forks_of",
    "keys_of",
    "open_collector",
    "open_copies",
    "open_log",
    "open_payloads",
    "open_pool",
    "open_registry",
    "open_replay",
    "open_shelves",
    "open_tiers",
    "producer",
    "providers_of",
    "replay_of",
    "sharing_terms",
    "subscription_secrets_of",
    "subscriptions_of",
    "trigger_ledger_of",
    "worker_token_of",
]
