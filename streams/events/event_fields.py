"""What the fold reads of an event, whether it is in the log already or only decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from streams.events.model import Json, PayloadRef, Root, Routing


class Fact(Protocol):
    """The part that `NewEvent` and `Event` have in common."""

    @property
    def type(self) -> str: ...
    @property
    def root(self) -> Root: ...
    @property
    def tenant_id(self) -> str: ...
    @property
    def organization_id(self) -> str: ...
    @property
    def parent_execution_id(self) -> int | None: ...
    @property
    def catalog_id(self) -> int | None: ...
    @property
    def node_name(self) -> str | None: ...
    @property
    def node_type(self) -> str | None: ...
    @property
    def status(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def meta(self) -> Mapping[str, Routing]: ...
    @property
    def context(self) -> Json: ...
    @property
    def result(self) -> Json: ...
    @property
    def payload_ref(self) -> PayloadRef | None: ...


def body(value: Json) -> dict[str, Any]:
    """Return a JSON object's fields; what is no object has none."""
    return value if isinstance(value, dict) else {}


def number(fact: Fact, name: str, default: int = 0) -> int:
    """Return a routing value as a number; 64-bit ids are text in JSON."""
    return int(fact.meta.get(name, default))


def text(fact: Fact, name: str) -> str | None:
    """Return a routing value as text, or None where it is missing."""
    value = fact.meta.get(name)
    return None if value is None else str(value)
