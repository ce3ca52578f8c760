"""Settings as a running embedded stack supplies them."""

from __future__ import annotations

import os
from pathlib import Path

from streams.data_folder import layout_of
from streams.local.credential_keys import key_settings
from streams.local.postgres import AUTHOR, AUTHOR_DATABASE
from streams.local.state import StackState, find_stack
from streams.settings import Loaded, load

PLACES = (
    ("event_store", "canonical_connection"),
    ("event_store", "connection", "url"),
    ("connect",),
    ("payload_store", "backend"),
    ("payload_store", "connection"),
    ("payload_store", "encryption_at_rest"),
    ("api", "url"),
)
"""Where the servers are: what a stack says about itself, whatever a file says of others."""
_REGISTRY = ("serialization", "schema_registry", "url")


def load_settings(config: Path | None, data: Path | None) -> Loaded:
    """Load the settings in effect here.

    `config` is the configuration file and `data` the stack's folder; None means the
    usual one of each. The addresses of a stack named by `data` win over the file; those of a
    stack that was merely found do not, since the file may name other servers.

    Raises:
        BadSettings: the configuration cannot be used.
    """
    stack = find_stack(data)
    if stack is not None and data is not None:
        return load_own(stack, config)
    return load(config, env=os.environ, stack=stack_settings(stack) if stack else None)


def load_own(stack: StackState, config: Path | None = None) -> Loaded:
    """Load the settings of whoever works on this stack and no other.

    File and environment act as everywhere, but not on where the servers are: a file that
    names the database of a deployment must not make `up` migrate that one.

    Raises:
        BadSettings: the configuration cannot be used.
    """
    settled = PLACES if stack.registry.url is None else (*PLACES, _REGISTRY)
    return load(config, env=os.environ, stack=stack_settings(stack), settled=settled)


def stack_settings(stack: StackState) -> dict[str, object]:
    """Say in settings where the services of an embedded stack are."""
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
                    if role != AUTHOR
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
            # Its S3 server writes plain files; whoever needs more runs a store of their own.
            "encryption_at_rest": False,
            "cache": {"tier_2_disk_path": str(stack.data / "payload-cache")},
        },
    }
    # A stack started by an older version of this program has no such user yet.
    if AUTHOR in postgres.role_passwords:
        dsn = postgres.dsn(AUTHOR, database=AUTHOR_DATABASE)
        settings["credentials"] = {"pg_local": {"dsn": dsn}}
    if keys := key_settings(layout_of(stack.data)):
        settings["credential_store"] = keys
    if stack.registry.url is not None:
        settings["serialization"] = {"schema_registry": {"url": stack.registry.url}}
    return settings
