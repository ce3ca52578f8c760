"""The stack's own key for credentials, and the word its workers show to be given one."""

from __future__ import annotations

from secrets import token_urlsafe

from streams.credential.keys import new_key
from streams.data_folder import Layout, write_private


def provide_keys(layout: Layout) -> None:
    """Make what is missing; what exists is never changed, since credentials depend on it."""
    if not layout.credential_key.exists():
        write_private(layout.credential_key, f"{new_key()}\n".encode())
    if not layout.worker_token.exists():
        write_private(layout.worker_token, f"{token_urlsafe(32)}\n".encode())


def key_settings(layout: Layout) -> dict[str, str]:
    """Say in settings where they are; a stack of an older version of this program has none."""
    places = {"key_file": layout.credential_key, "worker_token_file": layout.worker_token}
    return {name: str(path) for name, path in places.items() if path.exists()}
