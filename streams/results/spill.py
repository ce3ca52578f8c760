"""Spilling of values that do not fit into an event to a payload that the event names.

The names are in a separate field (`ctx_elsewhere` beside `ctx`), never in place of the value: an
author's own value can look like anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import orjson

from streams.errors import Refused
from streams.events.model import Json, PayloadRef
from streams.events.reading import fields_of, json_of, shape_of
from streams.results.limits import DEEPEST, NAMES_BYTES

NUL = b"\\u0000"
"""JSON escape of NUL, which Postgres text cannot hold."""


if TYPE_CHECKING:

    class Group(TypedDict):
        """Spilled values of an event: their names, and the payload that holds them."""

        names: list[str]
        sha256: str
        bytes: int
else:  # pydantic loads and stores plans, and need not check what events have carried
    Group = dict[str, object]


@dataclass(frozen=True, slots=True)
class Spill:
    """Named values of an event: those it carries, and those that go to a payload."""

    inline: dict[str, Json]
    spilled: dict[str, Json]

    @property
    def has_too_many_names(self) -> bool:
        """Whether an event cannot even carry the names of the spilled values."""
        return sum(map(len, self.spilled)) > NAMES_BYTES

    def fields(self, name: str, payload: PayloadRef) -> dict[str, Json]:
        """Return the fields of the event, given the payload of the spilled values."""
        return {name: self.inline, f"{name}_elsewhere": [json_of(group_of(self.spilled, payload))]}


def spill(values: Mapping[str, Json], limit: int, encode: Callable[[Json], bytes]) -> Spill:
    """Split values into those that fit into an event and those to spill."""
    moved = oversized({name: encode(value) for name, value in values.items()}, limit)
    spilled = {name: values[name] for name in moved}  # in this order, for a deterministic payload
    return Spill({one: value for one, value in values.items() if one not in spilled}, spilled)


def oversized(encoded: Mapping[str, bytes], limit: int) -> list[str]:
    """Return the names to spill: the largest values, until the others fit `limit`."""
    sizes = {name: len(name.encode()) + len(data) + 4 for name, data in encoded.items()}
    moved = [name for name, data in encoded.items() if not is_event_json(data)]
    rest = sum(sizes.values()) - sum(sizes[name] for name in moved)
    for name in sorted(sizes.keys() - set(moved), key=lambda one: (-sizes[one], one)):
        if rest <= limit:
            break
        rest -= sizes[name]
        moved.append(name)
    return moved


def is_inline(encoded: bytes, limit: int) -> bool:
    """Return whether an event with `limit` bytes left can carry this JSON."""
    return len(encoded) <= limit and is_event_json(encoded)


def is_event_json(encoded: bytes) -> bool:
    """Return whether an event can carry this JSON, apart from its size."""
    return NUL not in encoded and not _is_deep(encoded)


def group_of(names: Collection[str], ref: PayloadRef) -> Group:
    """Return the group of names in a payload, as events carry it."""
    return {"names": sorted(names), "sha256": ref.sha256, "bytes": ref.byte_length}


def groups_of(value: Json | Sequence[Mapping[str, Json]]) -> list[Group]:
    """Return the groups of an event's field such as `ctx_elsewhere`."""
    if not isinstance(value, list):
        return []
    return [group for one in value if (group := shape_of(one, Group)) is not None]


def groups_json(groups: Iterable[Group] | None) -> list[dict[str, Json]] | None:
    """Return groups as JSON; None if there are none."""
    return None if groups is None else [fields_of(json_of(group)) for group in groups]


def merged(
    values: Mapping[str, Json],
    groups: Sequence[Group],
    changes: Mapping[str, Json],
    changed: Sequence[Group],
) -> tuple[dict[str, Json], list[Group]]:
    """Return values and groups after changes; a name is in only one of them."""
    moved = {name for group in changed for name in group["names"]}
    inline = {name: value for name, value in values.items() if name not in moved}
    rest: list[Group] = []
    for group in groups:
        names = [one for one in group["names"] if one not in changes and one not in moved]
        if names:
            rest.append({**group, "names": names})
    return {**inline, **changes}, [*rest, *changed]


def encode_result(data: object) -> bytes:
    """Return a result as JSON.

    Raises:
        Refused: it cannot be JSON.
    """
    try:
        return orjson.dumps(data, default=str)
    except TypeError as error:
        raise Refused(f"the result is not JSON: {error}; convert such values to text") from error


def normalized(value: object) -> Json:
    """Return a value normalized to JSON: no NaN, no tuples."""
    found: Json = orjson.loads(encode_result(value))
    return found


def _is_deep(encoded: bytes) -> bool:
    if encoded.count(b"[") + encoded.count(b"{") <= DEEPEST:
        return False
    level: list[Json] = [orjson.loads(encoded)]
    for _ in range(DEEPEST + 1):
        level = [one for value in level for one in _inside(value) if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
