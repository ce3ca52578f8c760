"""The stack's credential key and worker token."""

from __future__ import annotations

from secrets import token_urlsafe

from streams.credential.keys import new_key
from streams.data_folder import Layout, write_private


def provide_keys(layout: Layout) -> None:
    """Create missing ones; existing ones are never changed, since credentials depend on them."""
    if not layout.credential_key.exists():
        write_private(layout.credential_key, f"{new_key()}\n".encode())
    if not layout.worker_token.exists():
        write_private(layout.worker_token, f"{token_urlsafe(32)}\n".encode())


def key_settings(layout: Layout) -> dict[str, str]:
    """Return their paths as settings; stacks of older versions have none."""
    paths = {"key_file": layout.credential_key, "worker_token_file": layout.worker_token}
    return {name: str(path) for name, path in paths.items() if path.exists()}
