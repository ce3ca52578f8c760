"""Redaction of the secrets in use, and of text that looks like one.

A user of a credential registers its secrets here while it is in use; events, results and log
lines pass through `text`, `error` or `value` at the edge of the process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import orjson

from streams.masking import HIDDEN, mask_text
from streams.redact.forms import secrets_in, stands_out


class InUse:
    """Secrets in use by one holder.

    All are removed from messages. From data only those that stand out: a password that is an
    ordinary word must not change the rows.
    """

    __slots__ = ("_all", "_known", "_sure", "_written")

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, str]] = {}
        self._all: tuple[str, ...] = ()
        self._sure: tuple[str, ...] = ()
        self._written: tuple[bytes, ...] = ()
        """Those that stand out, as orjson writes them."""

    def add(self, name: str, fields: Mapping[str, str]) -> None:
        """Register a credential's fields; known fields cost nothing."""
        if self._known.get(name) == fields:
            return
        self._known[name] = dict(fields)
        # The longest first: one secret may be a part of another.
        found = {*self._all, *secrets_in(fields)}
        self._all = tuple(sorted(found, key=len, reverse=True))
        self._sure = tuple(filter(stands_out, self._all))
        self._written = tuple(orjson.dumps(secret)[1:-1] for secret in self._sure)

    def text(self, text: str) -> str:
        """Return a message without any secret, or what looks like one."""
        text = _without(text, self._all)
        return mask_text(text) if "://" in text or "=" in text else text

    def error(self, error: Mapping[str, object]) -> dict[str, object]:
        """Return an error without secrets; its kind is preserved for rules."""
        clean = {
            name: self.text(value) if isinstance(value, str) else _cleaned(value, self._all)
            for name, value in error.items()
        }
        return {**clean, "kind": error["kind"]} if "kind" in error else clean

    def value(self, value: object) -> object:
        """Return a JSON value without secrets that stand out; the same one if it has none."""
        if not self._sure or value is None:
            return value
        try:
            written = orjson.dumps(value, default=str)
        except TypeError:  # not JSON: its writer reports that
            return _cleaned(value, self._sure)
        return (
            _cleaned(value, self._sure) if any(one in written for one in self._written) else value
        )


def _without(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def _cleaned(value: object, secrets: Sequence[str]) -> object:
    if isinstance(value, str):
        return _without(value, secrets)
    if isinstance(value, Mapping):
        return {_cleaned(key, secrets): _cleaned(item, secrets) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(item, secrets) for item in value]
    if type(value) is int:
        return HIDDEN if str(value) in secrets else value
    return value


_holders: set[InUse] = set()


@contextmanager
def in_use() -> Iterator[InUse]:
    """Register secrets for redaction, also from log lines, while the body runs."""
    made = InUse()
    _holders.add(made)
    try:
        yield made
    finally:
        _holders.discard(made)


class Formatter(logging.Formatter):
    """Formats log lines, including tracebacks, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = super().format(record)
        for holder in tuple(_holders):
            line = holder.text(line)
        return mask_text(line)
