"""Wiring of adapters to ports, from the settings."""

from streams.app.audits import open_audits, open_bundle_sources
from streams.app.credentials import (
    credentials_of,
    keys_of,
    operator_token_of,
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
from streams.app.projection_stores import open_routes
from streams.app.replay import (
    business_queries_of,
    business_replay_of,
    open_business_parity,
    open_business_queries,
    open_business_replay,
    open_organization_replay,
    open_replay,
    open_snapshot_store,
    organization_replay_of,
    replay_of,
)
from streams.app.retention import (
    event_store_of,
    open_policies,
    open_retention,
    stored_log_of,
)
from streams.app.roles import ANALYTICS_ROLES, NODE_ROLES, ROLES
from streams.payload.objects.open import open_payloads, open_shelves

__all__ = [
    "ANALYTICS_ROLES",
    "NODE_ROLES",
    "ROLES",
    "Log",
    "business_queries_of",
    "business_replay_of",
    "catalog_of",
    "credentials_of",
    "event_store_of",
    "forks_of",
    "keys_of",
    "open_audits",
    "open_bundle_sources",
    "open_business_parity",
    "open_business_queries",
    "open_business_replay",
    "open_collector",
    "open_copies",
    "open_log",
    "open_organization_replay",
    "open_payloads",
    "open_policies",
    "open_pool",
    "open_registry",
    "open_replay",
    "open_retention",
    "open_routes",
    "open_shelves",
    "open_snapshot_store",
    "open_tiers",
    "operator_token_of",
    "organization_replay_of",
    "producer",
    "providers_of",
    "replay_of",
    "sharing_terms",
    "stored_log_of",
    "subscription_secrets_of",
    "subscriptions_of",
    "trigger_ledger_of",
    "worker_token_of",
]
