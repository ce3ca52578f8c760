"""Resolution of payloads that templates need: generators without I/O.

`resolve` and `resolve_groups` yield the payloads they need and are sent the values, so that
the planner (which requests them and decides again) and the worker (which awaits them) share
them: `run` and `run_async` drive them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from streams.events.locator import Locator
from streams.events.model import Json, PayloadRef
from streams.events.reading import fields_of
from streams.payload.port import JSON, Scope
from streams.playbook.plain_views import wants_plain_data, wants_plain_task, without_results
from streams.playbook.spelling import Spelling
from streams.playbook.template_compiler import list_positions
from streams.playbook.views import METHODS, wants_data, wants_task
from streams.results.envelope import Envelope
from streams.results.spill import Group

Keys = Collection[Sequence[str]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NeededPayload:
    """A payload that templates read: data of a result, or values that were spilled."""

    ref: PayloadRef
    store: str = "object"
    """The tier that may have a copy."""
    task: str | None = None
    """Label of the task whose data it is; None: the step itself."""
    places: frozenset[int] | None = None
    """Positions of the needed rows of a loop; None: all."""
    names: tuple[str, ...] = ()
    """The needed spilled values; empty: the payload is the data of a result."""


Resolving = Generator[NeededPayload, Json, T]


def run(resolving: Resolving[T], read: Callable[[NeededPayload], Json]) -> T:
    """Return the result of `resolving`, with values from `read`."""
    try:
        need = next(resolving)
        while True:
            need = resolving.send(read(need))
    except StopIteration as done:
        found: T = done.value
        return found


async def run_async(resolving: Resolving[T], read: Callable[[NeededPayload], Awaitable[Json]]) -> T:
    """Like `run`, awaiting the values."""
    try:
        need = next(resolving)
        while True:
            need = resolving.send(await read(need))
    except StopIteration as done:
        found: T = done.value
        return found


def resolve(
    envelope: Envelope, keys: Keys, owner: Scope, spelling: Spelling = Spelling.SPEC
) -> Resolving[Envelope]:
    """Return the envelope with the data that these keys access; the rest stays in payloads."""
    if spelling is Spelling.NOETL:
        inner = [without_results(key) for key in keys]
    else:
        inner = [key[1:] if key and key[0] == "result" else key for key in keys]
    tasks = yield from resolve_groups(envelope.spilled_tasks, first_names(inner), owner)
    whole = envelope.with_tasks(tasks)
    found: dict[str | None, Json] = {}
    for need in needed(whole, keys, owner, spelling):
        found[need.task] = yield need
    return whole.with_data(found)


def resolve_groups(
    groups: Sequence[Group], names: Collection[str] | None, owner: Scope
) -> Resolving[dict[str, Json]]:
    """Return the spilled values with these names; None: all."""
    values: dict[str, Json] = {}
    for group in groups:
        found = tuple(one for one in group["names"] if names is None or one in names)
        if found:
            payload = fields_of((yield NeededPayload(_payload(group, owner), names=found)))
            values |= {name: payload[name] for name in found}
    return values


def needed(
    envelope: Envelope, keys: Keys, owner: Scope, spelling: Spelling = Spelling.SPEC
) -> Iterator[NeededPayload]:
    """Yield the payloads of the data that these keys access."""
    is_plain = spelling is Spelling.NOETL
    wants = wants_plain_data if is_plain else wants_data
    of_task = wants_plain_task if is_plain else wants_task
    if any(wants(one, envelope.fields) for one in keys):
        for need in _data_of(None, envelope, owner):
            yield replace(need, places=None if is_plain else _places(envelope, keys))
    for label, one in envelope.tasks.items():
        if one is not None and any(of_task(key, label, one.fields) for key in keys):
            yield from _data_of(label, one, owner)


def keys_from(name: str, ways: Keys) -> list[Sequence[str]]:
    """Return the keys that templates access below `name`."""
    return [way[1:] for way in ways if way[0] == name]


def names_read(name: str, ways: Keys) -> set[str] | None:
    """Return the values below `name` that templates read; None: any."""
    return first_names(keys_from(name, ways))


def first_names(keys: Keys) -> set[str] | None:
    """Return the first names of these keys; None: any."""
    if any(not key or key[0] in METHODS for key in keys):
        return None
    return {key[0] for key in keys}


def _places(envelope: Envelope, keys: Keys) -> frozenset[int] | None:
    """Return the positions of a loop's rows that templates access; None: any."""
    if "counts" not in envelope.fields:
        return None
    places: set[int] = set()
    for key in keys:
        if not wants_data(key, envelope.fields):
            continue
        found = list_positions(key[1]) if len(key) > 1 and key[0] in ("data", "result") else None
        if found is None:
            return None
        places.update(found)
    return frozenset(places)


def _data_of(task: str | None, envelope: Envelope, owner: Scope) -> Iterator[NeededPayload]:
    ref, reference = envelope.data_payload(owner), envelope.reference
    if ref is not None:
        yield NeededPayload(ref, "object" if reference is None else reference.store, task)


def _payload(group: Group, owner: Scope) -> PayloadRef:
    digest = group["sha256"]
    return PayloadRef(
        uri=str(Locator.payload(owner.tenant_id, owner.organization_id, digest)),
        sha256=digest,
        media_type=JSON,
        byte_length=group["bytes"],
    )
