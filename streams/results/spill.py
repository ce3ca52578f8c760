"""Spilling: values that an event cannot carry go to a payload, and the event names them.

The names are beside the values they would be among (`args`, `ctx`, `tasks`), never in their
place: an author's own value can look like anything.
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
"""How JSON writes the character that no text of a database has."""


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
        """Whether an event cannot even carry the names of what was spilled."""
        return sum(map(len, self.spilled)) > NAMES_BYTES

    def fields(self, name: str, payload: PayloadRef) -> dict[str, Json]:
        """Return the fields of the event, given the payload that has what was spilled."""
        return {name: self.inline, f"{name}_elsewhere": [json_of(group_of(self.spilled, payload))]}


def spill(values: Mapping[str, Json], limit: int, encode: Callable[[Json], bytes]) -> Spill:
    """Split values into those that fit an event together and those that must leave it."""
    moved = oversized({name: encode(value) for name, value in values.items()}, limit)
    spilled = {name: values[name] for name in moved}  # in this order: a payload is its bytes
    return Spill({one: value for one, value in values.items() if one not in spilled}, spilled)


def oversized(encoded: Mapping[str, bytes], limit: int) -> list[str]:
    """Return whose values must leave an event: the largest, until the others have `limit`."""
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
    """Whether an event that has `limit` bytes for it can carry this JSON."""
    return len(encoded) <= limit and is_event_json(encoded)


def is_event_json(encoded: bytes) -> bool:
    """Whether an event can carry this JSON, apart from its size."""
    return NUL not in encoded and not _is_deep(encoded)


def group_of(names: Collection[str], ref: PayloadRef) -> Group:
    """Return how an event names values that are in a payload."""
    return {"names": sorted(names), "sha256": ref.sha256, "bytes": ref.byte_length}


def groups_of(value: Json | Sequence[Mapping[str, Json]]) -> list[Group]:
    """Return the groups that an event has under a name such as `ctx_elsewhere`."""
    if not isinstance(value, list):
        return []
    return [group for one in value if (group := shape_of(one, Group)) is not None]


def groups_json(groups: Iterable[Group] | None) -> list[dict[str, Json]] | None:
    """Return groups as an event has them; None where there are none."""
    return None if groups is None else [fields_of(json_of(group)) for group in groups]


def merged(
    values: Mapping[str, Json],
    groups: Sequence[Group],
    changes: Mapping[str, Json],
    changed: Sequence[Group],
) -> tuple[dict[str, Json], list[Group]]:
    """Return values and groups after changes; a name is in one place only."""
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
        raise Refused(f"the result is not JSON: {error}; return text for what is not") from error


def normalized(value: object) -> Json:
    """Return a value as JSON has it: no NaN, no tuples."""
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
