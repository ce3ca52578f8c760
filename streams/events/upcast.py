"""Upcasters: convert old events to the newest version of their schema.

The log and the codec never change an event. A fold upcasts first, so it handles only the
newest version of each schema; snapshots record the upcasters they were made with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from streams.errors import Inconsistent, Unavailable
from streams.events.catalogue import Catalogue, catalogue
from streams.events.model import Event
from streams.events.reading import EventFields, RoutingFields
from streams.events.upcaster import Body, Upcaster
from streams.events.upcasters import STEPS


class BadUpcaster(Inconsistent):
    """The registered upcasters contradict each other."""


class MissingUpcaster(Inconsistent):
    """No upcasters convert an event's version to the catalogue's."""

    def __init__(self, schema_name: str, from_version: int, to_version: int) -> None:
        super().__init__(
            f"{schema_name}: no upcaster from version {from_version} to {to_version}; "
            "register the missing step in streams/events/upcasters.py"
        )
        self.schema_name = schema_name
        self.from_version, self.to_version = from_version, to_version


class NewerEvent(Unavailable):
    """An event has a later version than this program reads; it is held until the upgrade."""

    dependency = "an upgrade of this program"

    def __init__(self, schema_name: str, version: int, known: int) -> None:
        super().__init__(
            f"{schema_name}: the event is of version {version}, this program reads up to {known}; "
            "upgrade this program: nothing was skipped, it continues with this event"
        )
        self.schema_name, self.version, self.known = schema_name, version, known


class Upcasters:
    """All steps. Each version has at most one next step, so the order is unambiguous."""

    def __init__(self, steps: Iterable[Upcaster] = ()) -> None:
        found: dict[tuple[str, int], Upcaster] = {}
        for step in steps:
            if step.to_version <= step.from_version:
                raise BadUpcaster(f"upcaster {step.name}: must convert to a later version")
            if (step.schema_name, step.from_version) in found:
                raise BadUpcaster(
                    f"upcaster {step.name}: its first version already has an upcaster"
                )
            found[step.schema_name, step.from_version] = step
        self._steps = MappingProxyType(found)
        self._versions: dict[str, str] | None = None

    def versions(self) -> dict[str, str]:
        """Return the digest of each step's code, by the name and versions of its schema."""
        if self._versions is None:
            self._versions = {step.name: step.digest for step in self._steps.values()}
        return dict(self._versions)

    def path(self, schema_name: str, version: int, target: int) -> tuple[Upcaster, ...]:
        """Return the steps from `version` to `target`, in the order they are applied.

        Raises:
            MissingUpcaster: a step is missing.
            NewerEvent: `version` is later than `target`.
        """
        if 0 < target < version:
            raise NewerEvent(schema_name, version, target)
        steps: list[Upcaster] = []
        while version != target:
            step = self._steps.get((schema_name, version))
            if step is None or step.to_version > target:
                raise MissingUpcaster(schema_name, version, target)
            steps.append(step)
            version = step.to_version
        return tuple(steps)


UPCASTERS = Upcasters(STEPS)
"""The steps of this program."""


def upcast(event: Event, known: Catalogue, upcasters: Upcasters = UPCASTERS) -> Event:
    """Return `event` at the catalogue's version of its schema.

    Its checksum stays that of the stored bytes.

    Raises:
        MissingUpcaster: a step is missing.
        NewerEvent: the event has a later version than the catalogue.
    """
    kind = known.types.get(event.type)
    target = 0 if kind is None else kind.version
    if event.schema_version == target:
        return event
    steps = upcasters.path(event.schema_name, event.schema_version, target)
    body = _after(Body(event.meta, event.context, event.result), steps)
    return replace(
        event,
        meta=body.meta,
        context=body.context,
        result=body.result,
        schema_version=target,
    )


def at_version(event: EventFields, target: int) -> EventFields:
    """Return the fields of an event of another version of its type, as of version `target`.

    Raises:
        MissingUpcaster, NewerEvent: as for `upcast`.
    """
    steps = UPCASTERS.path(f"noetl.{event.type}", event.schema_version or target, target)
    body = _after(Body(event.meta, event.context, event.result), steps)
    return RoutingFields(
        type=event.type,
        meta=body.meta,
        node_name=event.node_name,
        node_type=event.node_type,
        status=event.status,
        error=event.error,
        current_item=event.current_item,
        context=body.context,
        result=body.result,
        payload_ref=event.payload_ref,
        schema_version=target,
    )


def steps_applied(events: Iterable[Event]) -> Counter[str]:
    """Return how often a fold of stored events applies each step, by its name."""
    found: Counter[str] = Counter()
    versions = _versions()
    for event in events:
        version = versions.get(event.type, event.schema_version)
        if event.schema_version != version:
            path = UPCASTERS.path(event.schema_name, event.schema_version, version)
            found.update(step.name for step in path)
    return found


@lru_cache(maxsize=1)
def _versions() -> dict[str, int]:
    return {name: kind.version for name, kind in catalogue().types.items()}


def _after(body: Body, steps: Iterable[Upcaster]) -> Body:
    for step in steps:
        body = step.change(body)
    return body
