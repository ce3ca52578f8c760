"""The passwords and keys of one stack, generated once and stored in its data folder."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from streams.data_folder import Layout, write_private

ROLES = (
    "noetl_owner",
    "noetl_append",
    "noetl_read",
    "noetl_mirror",
    "noetl_project",
    "noetl_collect",
    "noetl_author",
    "noetl_analytics",
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """Credentials of the services of one stack."""

    superuser_password: str
    role_passwords: Mapping[str, str]
    access_key: str
    secret_key: str


def load_secrets(layout: Layout) -> Secrets:
    """Return the stack's secrets, generating missing ones."""
    known = orjson.loads(layout.secrets.read_bytes()) if layout.secrets.exists() else {}
    generated = complete(known, lambda: secrets.token_urlsafe(24))
    if asdict(generated) != known:
        write_private(layout.secrets, orjson.dumps(asdict(generated)))
    _publish_to_connect(layout.connect_secrets, generated)
    return generated


def complete(known: Mapping[str, object], make: Callable[[], str]) -> Secrets:
    """Add missing secrets; existing ones are never changed, since data depends on them."""
    roles = known.get("role_passwords")
    passwords = dict(roles) if isinstance(roles, Mapping) else {}
    return Secrets(
        superuser_password=str(known.get("superuser_password") or make()),
        role_passwords={role: str(passwords.get(role) or make()) for role in ROLES},
        access_key=str(known.get("access_key") or f"noetl{make()[:11]}"),
        secret_key=str(known.get("secret_key") or make()),
    )


def _publish_to_connect(folder: Path, generated: Secrets) -> None:
    """Write the roles' passwords for references in connector configurations.

    One file per role, as Kubernetes mounts a secret, and a properties file with the same
    content for single-file references; and the keys of the object store, for the lake.
    """
    for name, key in (
        ("s3_access_key", generated.access_key),
        ("s3_secret_key", generated.secret_key),
    ):
        write_private(folder / name, key.encode())
    for role, password in generated.role_passwords.items():
        write_private(folder / role, password.encode())
    lines = "".join(f"{role}={password}\n" for role, password in generated.role_passwords.items())
    write_private(folder / "postgres.properties", lines.encode())
