"""Upcasters: convert old events to the newest version of their schema.

The log and the codec never change an event. A fold upcasts first, so it handles only the
newest version of each schema; snapshots record the upcasters they were made with.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from blake3 import blake3

from streams.errors import Inconsistent
from streams.events.catalogue import Catalogue
from streams.events.model import Event, Json, Routing


class BadUpcaster(Inconsistent):
    """The registered upcasters contradict each other."""


class MissingUpcaster(Inconsistent):
    """No upcasters convert an event's version to the catalogue's."""

    def __init__(self, schema_name: str, from_version: int, to_version: int) -> None:
        super().__init__(
            f"{schema_name}: no upcaster from version {from_version} to {to_version}; "
            "register the missing step in streams/events/upcast.py, or upgrade this program "
            "if the event is newer than it"
        )
        self.schema_name = schema_name
        self.from_version, self.to_version = from_version, to_version


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
    def digest(self) -> str:
        """The digest of its code."""
        return blake3(inspect.getsource(self.change).encode()).hexdigest()


class Upcasters:
    """All steps. Each version has at most one next step, so the order is unambiguous."""

    def __init__(self, steps: Iterable[Upcaster] = ()) -> None:
        found: dict[tuple[str, int], Upcaster] = {}
        for step in steps:
            name = f"{step.schema_name} {step.from_version} to {step.to_version}"
            if step.to_version <= step.from_version:
                raise BadUpcaster(f"upcaster {name}: must convert to a later version")
            if (step.schema_name, step.from_version) in found:
                raise BadUpcaster(f"upcaster {name}: its first version already has an upcaster")
            found[step.schema_name, step.from_version] = step
        self._steps = MappingProxyType(found)

    def versions(self) -> dict[str, str]:
        """Return the digest of each step's code, by the name and versions of its schema."""
        return {
            f"{step.schema_name} {step.from_version} to {step.to_version}": step.digest
            for step in self._steps.values()
        }

    def path(self, schema_name: str, version: int, target: int) -> tuple[Upcaster, ...]:
        """Return the steps from `version` to `target`, in the order they are applied.

        Raises:
            MissingUpcaster: a step is missing, or `version` is later than `target`.
        """
        steps: list[Upcaster] = []
        while version != target:
            step = self._steps.get((schema_name, version))
            if step is None or step.to_version > target:
                raise MissingUpcaster(schema_name, version, target)
            steps.append(step)
            version = step.to_version
        return tuple(steps)


UPCASTERS = Upcasters()
"""The steps of this program; empty while every schema is at its first version."""


def upcast(event: Event, catalogue: Catalogue, upcasters: Upcasters = UPCASTERS) -> Event:
    """Return `event` at the catalogue's version of its schema.

    Its checksum stays that of the stored bytes.

    Raises:
        MissingUpcaster: a step is missing.
    """
    kind = catalogue.types.get(event.type)
    target = 0 if kind is None else kind.version
    if event.schema_version == target:
        return event
    body = Body(event.meta, event.context, event.result)
    for step in upcasters.path(event.schema_name, event.schema_version, target):
        body = step.change(body)
    return replace(
        event,
        meta=body.meta,
        context=body.context,
        result=body.result,
        schema_version=target,
    )
