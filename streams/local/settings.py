"""Settings of a running embedded stack."""

from __future__ import annotations

import os
from pathlib import Path

from streams.data_folder import layout_of
from streams.local.credential_keys import key_settings
from streams.local.postgres import ANALYTICS, ANALYTICS_DATABASE, AUTHOR, AUTHOR_DATABASE
from streams.local.s3 import LAKE_BUCKET
from streams.local.state import StackState, find_stack
from streams.settings import Loaded, load

ADDRESSES = (
    ("event_store", "canonical_connection"),
    ("event_store", "connection", "url"),
    ("connect",),
    ("payload_store", "backend"),
    ("payload_store", "connection"),
    ("payload_store", "encryption_at_rest"),
    ("analytics",),
    ("api", "url"),
)
"""Addresses of servers: settings for which a stack overrides a file."""
_REGISTRY = ("serialization", "schema_registry", "url")


def load_settings(config: Path | None, data: Path | None) -> Loaded:
    """Load the effective settings.

    `config` is the configuration file and `data` the stack's folder; None is the default of
    each. The addresses of a stack given by `data` override the file; those of a stack found by
    default do not, since the file may have other servers.

    Raises:
        BadSettings: the configuration is invalid.
    """
    stack = find_stack(data)
    if stack is not None and data is not None:
        return load_own(stack, config)
    return load(config, env=os.environ, stack=stack_settings(stack) if stack else None)


def load_own(stack: StackState, config: Path | None = None) -> Loaded:
    """Load the settings for work on this stack only.

    File and environment apply, except for server addresses: a file with the database of a
    deployment must not make `up` migrate that one.

    Raises:
        BadSettings: the configuration is invalid.
    """
    overriding = ADDRESSES if stack.registry.url is None else (*ADDRESSES, _REGISTRY)
    return load(config, env=os.environ, stack=stack_settings(stack), settled=overriding)


def stack_settings(stack: StackState) -> dict[str, object]:
    """Return the addresses of a stack's services as settings."""
    postgres, s3 = stack.postgres, stack.s3
    settings: dict[str, object] = {
        "event_store": {
            "canonical_connection": {
                "host": postgres.host,
                "port": postgres.port,
                "database": postgres.database,
                "roles": {
                    role.removeprefix("noetl_"): {"user": role, "password": password}
                    for role, password in postgres.role_passwords.items()
                    if role not in (AUTHOR, ANALYTICS)
                },
            },
            "connection": {"url": stack.kafka.bootstrap},
        },
        "connect": {"url": stack.connect.url, "secrets_dir": str(stack.connect.secrets_dir)},
        "payload_store": {
            "backend": "s3",
            "connection": {
                "endpoint": s3.endpoint,
                "bucket": s3.bucket,
                "region": s3.region,
                "access_key": s3.access_key,
                "secret_key": s3.secret_key,
            },
            # The embedded S3 server writes plain files.
            "encryption_at_rest": False,
            "cache": {"tier_2_disk_path": str(stack.data / "payload-cache")},
        },
    }
    # A stack started by an older version has no such user.
    if AUTHOR in postgres.role_passwords:
        dsn = postgres.dsn(AUTHOR, database=AUTHOR_DATABASE)
        settings["credentials"] = {"pg_local": {"dsn": dsn}}
    if ANALYTICS in postgres.role_passwords:
        settings["analytics"] = {
            "host": postgres.host,
            "port": postgres.port,
            "database": ANALYTICS_DATABASE,
            "user": ANALYTICS,
            "password": postgres.role_passwords[ANALYTICS],
            "lake_bucket": LAKE_BUCKET,
        }
    if keys := key_settings(layout_of(stack.data)):
        settings["credential_store"] = keys
    if stack.registry.url is not None:
        settings["serialization"] = {"schema_registry": {"url": stack.registry.url}}
    return settings
