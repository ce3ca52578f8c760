"""The only place where adapters are chosen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from streams.settings import Loaded, load

if TYPE_CHECKING:
    from streams.local.state import StackState


def load_settings(config: Path | None, data: Path | None) -> Loaded:
    """Load the settings in effect here, with a running embedded stack under the file.

    `config` is the configuration file and `data` the stack's folder; None means the
    usual one of each.

    Raises:
        BadSettings: the configuration cannot be used.
    """
    from streams.local.state import find_stack

    stack = find_stack(data)
    return load(config, env=os.environ, stack=stack_settings(stack) if stack else None)


def stack_settings(stack: StackState) -> dict[str, object]:
    """Say in settings where the parts of an embedded stack are."""
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
    if stack.registry.url is not None:
        settings["serialization"] = {"schema_registry": {"url": stack.registry.url}}
    return settings
