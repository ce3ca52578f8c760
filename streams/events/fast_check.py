"""A fast validity check of events.

The full check in `rules` is a fifth of the cost of an append. This one checks everything in
one pass and returns True only for events that are certainly valid; the rest go through
`rules`, which also reports the broken rule. A test compares the two.
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Any

from streams.events.catalogue import EventType
from streams.events.limits import MAX_ID, MAX_NAME_CHARS, MAX_SAFE_INT
from streams.events.model import NewEvent, Root

_DOTS = (".", "..")  # printable, but not valid names
_SHORT = 85  # bytes: at most 255 characters once percent-encoded
_MAX_DEPTH = 20  # deeper data is left to `rules`


def certainly_valid(event: NewEvent, kind: EventType) -> bool:
    """Return whether `event` certainly satisfies all rules but those of its payload reference."""
    root, expected, index = event.root, event.expected_version, event.current_index
    if (
        type(root) is not Root
        or root.type != kind.root
        or type(event.event_time) is not datetime
        or event.event_time.tzinfo is not UTC
        or event.schema_version is not None
        or (expected is not None and not _is_number(expected, 0))
        or (index is not None and (not _is_number(index, 0) or index > MAX_SAFE_INT))
    ):
        return False
    if not _is_number(root.id, 1):
        return False
    for owner in (event.tenant_id, event.organization_id):
        if type(owner) is not str or owner in _DOTS:
            return False
        if len(owner) > (_SHORT if owner.isascii() else _SHORT // 4):
            return False
    for number in (event.causation_id, event.parent_execution_id, event.catalog_id):
        if number is not None and not _is_number(number, 1):
            return False
    texts = [event.tenant_id, event.organization_id, event.idempotency_key]
    for optional in (
        event.correlation_id,
        event.node_name,
        event.node_type,
        event.status,
        event.trace,
    ):
        if optional is not None:
            texts.append(optional)
    for column in kind.columns:
        if getattr(event, column) is None:
            return False
    if not _routes(event.meta, kind, texts) or not _carries(event, kind):
        return False
    for text in texts:
        if type(text) is not str or not 0 < len(text) <= MAX_NAME_CHARS:
            return False
    return "".join(texts).isprintable()


def _routes(meta: Any, kind: EventType, texts: list[str]) -> bool:
    """Check the routing values; append free text to `texts`."""
    if type(meta) is not dict or not kind.required_meta <= meta.keys():
        return False
    for name, value in meta.items():
        field = kind.meta.get(name)
        if field is None:
            return False
        wanted, given = field.kind, type(value)
        if given is str:
            if wanted == "id":
                # Any number of this many digits fits.
                if not (
                    value.isascii() and value.isdigit() and value[0] != "0" and len(value) < 19
                ):
                    return False
            elif wanted == "text":
                texts.append(value)
            elif wanted != "choice" or value not in field.choices:
                return False
        elif given is int:
            if wanted != "int" or not 0 <= value <= MAX_SAFE_INT:
                return False
        elif given is not bool or wanted != "bool":
            return False
    return True


def _carries(event: NewEvent, kind: EventType) -> bool:
    """Check the user data, if it is simple."""
    if event.error is not None and type(event.error) is not str:
        return False
    for name in ("context", "result", "current_item", "error"):
        value = getattr(event, name)
        if value is not None and (name not in kind.user_data or not _is_simple(value, 0)):
            return False
    return True


def _is_number(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MAX_ID


def _is_simple(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind is str:
        return bool(value.isprintable())
    if kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return isfinite(value)
    if kind is dict and depth < _MAX_DEPTH:
        for key, inner in value.items():
            if type(key) is not str or not key.isprintable() or not _is_simple(inner, depth + 1):
                return False
        return True
    if kind is list and depth < _MAX_DEPTH:
        return all(_is_simple(inner, depth + 1) for inner in value)
    return False
