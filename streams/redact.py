"""Keeps secrets out of what is written: those in use now, and whatever looks like one.

Whoever uses a credential keeps its secrets here for as long as that lasts; events, results
and log lines then go through `text` or `value` at the edge of the process.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import orjson

from streams.settings.mask import HIDDEN, mask_text

SHORTEST = 4
"""A shorter text is no secret, and would be found everywhere."""
# Fields that say where and who, and are wanted in messages.
_OPEN = frozenset(
    (
        *("host", "hostname", "port", "user", "username", "login", "database", "dbname", "schema"),
        *("header", "type", "sslmode", "region", "bucket", "driver", "account", "warehouse"),
        *("role", "project", "namespace", "table", "index"),
    )
)


class InUse:
    """Secrets in use by one holder."""

    __slots__ = ("_names", "_texts")

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._texts: tuple[str, ...] = ()

    def add(self, name: str, fields: Mapping[str, str]) -> None:
        """Take note of a credential's fields; a name that is known costs nothing."""
        if name in self._names:
            return
        self._names.add(name)
        # The longest first: one secret may be a part of another.
        found = {*self._texts, *secrets_in(fields)}
        self._texts = tuple(sorted(found, key=len, reverse=True))

    def text(self, text: str) -> str:
        """Return `text` without any secret."""
        for secret in self._texts:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return mask_text(text) if "://" in text or "=" in text else text

    def value(self, value: Any) -> Any:
        """Return a JSON value without any secret in use; it is the same one if it has none."""
        if not self._texts or value is None:
            return value
        told = orjson.dumps(value, default=str)
        written = (orjson.dumps(secret)[1:-1] for secret in self._texts)
        return self._cleaned(value) if any(secret in told for secret in written) else value

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._texts:
                value = value.replace(secret, HIDDEN)
            return value
        if isinstance(value, Mapping):
            return {self._cleaned(key): self._cleaned(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._cleaned(item) for item in value]
        return value


def secrets_in(fields: Mapping[str, str]) -> set[str]:
    """Return every text that gives a credential away, as it may be quoted by somebody."""
    found: set[str] = set()
    for name, value in fields.items():
        if name.lower() in _OPEN:
            continue
        found |= _in_address(value) if "://" in value else {value}
    user = fields.get("username") or fields.get("user") or ""
    if password := fields.get("password"):
        found |= {quote(password, safe=""), _basic(user, password)}
    return {one for one in found if len(one) >= SHORTEST}


def _in_address(value: str) -> set[str]:
    """Return an address with a login and its password; one without a login is no secret."""
    try:
        parts = urlsplit(value)
        user, password = parts.username or "", parts.password
    except ValueError:
        return {value}
    if password is None:
        return {value} if "=" in parts.query else set()
    plain = unquote(password)
    return {value, password, plain, _basic(unquote(user), plain)}


def _basic(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()


_holders: set[InUse] = set()


@contextmanager
def in_use() -> Iterator[InUse]:
    """Keep secrets known to this process's log lines until the body ends."""
    made = InUse()
    _holders.add(made)
    try:
        yield made
    finally:
        _holders.discard(made)


class Formatter(logging.Formatter):
    """Writes log lines, tracebacks included, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = super().format(record)
        for holder in tuple(_holders):
            line = holder.text(line)
        return mask_text(line)
