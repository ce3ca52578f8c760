"""The only place where adapters are chosen."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from streams.settings import Loaded, load


def load_settings(config: Path | None, data: Path | None) -> Loaded:
    """Load the settings in effect here, with a running embedded stack under the file.

    `config` is the configuration file and `data` the stack's folder; None means the
    usual one of each.

    Raises:
        BadSettings: the configuration cannot be used.
    """
    stack = _running_stack(data)
    return load(config, env=os.environ, stack=stack and stack_settings(stack))


def _running_stack(data: Path | None) -> Any:
    if find_spec("streams.local.state") is None:
        return None
    find_stack = import_module("streams.local.state").find_stack
    return find_stack() if data is None else find_stack(data)


def stack_settings(stack: Any) -> dict[str, object]:
    """Say in settings where the parts of an embedded stack are."""
    postgres, s3 = stack.postgres, stack.s3
    roles = {duty: {"password": word} for duty, word in postgres.role_passwords.items()}
    settings: dict[str, object] = {
        "event_store": {
            "canonical_connection": {
                "host": postgres.host,
                "port": postgres.port,
                "database": postgres.database,
                "roles": roles,
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
        },
    }
    if stack.registry is not None:
        settings["serialization"] = {"schema_registry": {"url": stack.registry.url}}
    return settings
