"""Rows of a frame, by kind of cursor, and the cursor of its continuation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from streams.errors import Refused
from streams.events.model import Json
from streams.events.reading import fields_of
from streams.kafka.work.item import WorkItem
from streams.playbook.model import Cursor
from streams.worker.options import Options, WorkerPorts
from streams.worker.rows import offsets, sql


class BadCursor(Refused):
    """A cursor that this worker cannot read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A frame's rows.

    `first` is the number of the first row in its collection. `rest(n)` is the cursor of the
    rows after the first n; None: the rows belong to this frame and cannot be continued by
    another. `keys` order the rows where rows of one key must stay in one frame.
    """

    items: Sequence[Json]
    end: Mapping[str, Json]
    rest: Callable[[int], dict[str, Json]] | None = None
    first: int = 0
    keys: Sequence[str] | None = None
    exhausted: bool | None = None

    def may_part(self, number: int) -> bool:
        """Return whether the frame may end before its row `number`."""
        if self.rest is None or number == 0:
            return False
        return self.keys is None or self.keys[number] != self.keys[number - 1]


async def read_rows(
    item: WorkItem,
    cursor: Cursor | None,
    document: Mapping[str, Json],
    scope: Mapping[str, object],
    ports: WorkerPorts,
    options: Options,
) -> Rows:
    """Return the rows that the item's cursor names.

    Raises:
        Refused: the cursor is not valid.
        Unavailable: its source is down.
    """
    given = item.cursor or {}
    kind = given.get("kind", "list")
    if kind == "list":
        return _of_list(given, document)
    if cursor is None:
        raise BadCursor(f"frame {item.entity_id}: {kind} cursor, but step {item.step} has none")
    config = _config(cursor, scope)
    if kind == "keyset":
        return await _of_keyset(item, given, document, cursor, config, ports)
    if kind == "claim":
        return await _of_claim(item, given, cursor, config, ports, options)
    if kind == "offsets":
        return await _of_offsets(given, config, ports)
    raise BadCursor(f"frame {item.entity_id}: unknown kind of cursor {kind!r}")


async def plan(
    item: WorkItem, cursor: Cursor, size: int, scope: Mapping[str, object], ports: WorkerPorts
) -> dict[str, Json]:
    """Return the frames of a cursor: the boundaries of a keyset, or the ranges of a topic."""
    config = _config(cursor, scope)
    if cursor.form == "keyset":
        return await sql.boundaries(sql.asker(item, cursor.kind, ports), config, size)
    if cursor.form == "offsets":
        return offsets.split(await offsets.of(ports).ranges(_topic(config)), size)
    raise BadCursor(f"step {item.step}: the frames of a {cursor.form} cursor cannot be planned")


def _of_list(given: Mapping[str, Json], document: Mapping[str, Json]) -> Rows:
    items = document.get("items")
    if not isinstance(items, list):
        raise BadCursor("the document of a list loop holds no items")
    start, end = _number(given, "from", 0), _number(given, "to", len(items))
    if not 0 <= start <= end <= len(items):
        raise BadCursor(f"rows {start} to {end} of a list of {len(items)}: out of bounds")

    def rest(count: int) -> dict[str, Json]:
        return {"kind": "list", "from": start + count, "to": end}

    ended: dict[str, Json] = {"kind": "list", "from": start, "to": end}
    return Rows(items=items[start:end], first=start, end=ended, rest=rest)


async def _of_keyset(
    item: WorkItem,
    given: Mapping[str, Json],
    document: Mapping[str, Json],
    cursor: Cursor,
    config: Mapping[str, Json],
    ports: WorkerPorts,
) -> Rows:
    kind = given.get("type") or fields_of(document.get("source")).get("type")
    window = sql.Window(_text(given.get("after")), _text(given.get("through")), _text(kind))
    items, keys = await sql.keyset(sql.asker(item, cursor.kind, ports), config, window)
    ended = {key: value for key, value in given.items() if key != "continues"}

    def rest(count: int) -> dict[str, Json]:
        return {**ended, "after": keys[count - 1]}

    return Rows(items=items, keys=keys, end=ended, rest=rest)


async def _of_claim(
    item: WorkItem,
    given: Mapping[str, Json],
    cursor: Cursor,
    config: Mapping[str, Json],
    ports: WorkerPorts,
    options: Options,
) -> Rows:
    size = int((item.policy or {}).get("size") or 1)
    ask = sql.asker(item, cursor.kind, ports)
    items = await sql.claim(ask, config, item.entity_id, size, options.name)
    return Rows(items=items, end={"kind": "claim"}, exhausted=len(items) < size)


async def _of_offsets(
    given: Mapping[str, Json], config: Mapping[str, Json], ports: WorkerPorts
) -> Rows:
    partition, start, end = (_number(given, name) for name in ("partition", "from", "to"))
    items = await offsets.of(ports).read(_topic(config), partition, start, end)
    ended: dict[str, Json] = {"kind": "offsets", "partition": partition, "from": start, "to": end}

    def rest(count: int) -> dict[str, Json]:
        return {**ended, "from": items[count]["offset"]}

    return Rows(items=[dict(one) for one in items], end=ended, rest=rest)


def _config(cursor: Cursor, scope: Mapping[str, object]) -> dict[str, Json]:
    config = cursor.config.render(scope)
    if not isinstance(config, dict):
        raise BadCursor("the configuration of the cursor is not a mapping")
    return config


def _number(given: Mapping[str, Json], name: str, default: Json = None) -> int:
    value = given.get(name, default)
    if not isinstance(value, int | float | str):
        raise BadCursor(f"`{name}` of the cursor is {value!r}, not a number")
    return int(value)


def _text(value: Json) -> str | None:
    return None if value is None else str(value)


def _topic(config: Mapping[str, Json]) -> str:
    topic = config.get("topic")
    if not isinstance(topic, str) or not topic:
        raise BadCursor("the cursor names no topic")
    return topic
