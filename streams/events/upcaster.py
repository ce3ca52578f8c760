"""An upcaster: one step from a version of an event's schema to a later one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from streams.events.code_digest import code_digest
from streams.events.model import Json, Routing


@dataclass(frozen=True, slots=True)
class Body:
    """The part of an event that its schema version describes."""

    meta: Mapping[str, Routing]
    context: Json = None
    result: Json = None


Change: TypeAlias = Callable[[Body], Body]


@dataclass(frozen=True, slots=True)
class Upcaster:
    """One step from a version of a schema to a later one; `change` must be pure."""

    schema_name: str
    from_version: int
    to_version: int
    change: Change

    @property
    def name(self) -> str:
        """The schema and both versions, as lock file and replay name the step."""
        return f"{self.schema_name} {self.from_version} to {self.to_version}"

    @property
    def digest(self) -> str:
        """The digest of its code.

        Raises:
            ValueError: `change` is not a function of a module.
        """
        return code_digest(self.change)
