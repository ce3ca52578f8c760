"""Masking of secrets when settings are shown."""

from __future__ import annotations

from streams.masking import HIDDEN, mask_text
from streams.settings.layers import Path

_SECRET_KEYS = frozenset({"password", "secret_key", "access_key", "worker_token", "operator_token"})


def is_secret(path: Path) -> bool:
    """Return whether the whole value at `path` is secret."""
    if path[:1] == ("credentials",):
        return len(path) > 1
    if path == ("credential_store", "key"):
        return True
    return bool(path) and path[-1] in _SECRET_KEYS


def masked(path: Path, value: object) -> object:
    """Return `value` masked; an empty secret stays visibly empty."""
    if is_secret(path):
        return HIDDEN if value not in (None, "") else value
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, (list, tuple)):
        return [masked(path, item) for item in value]
    return value
