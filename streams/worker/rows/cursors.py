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

FRAME_SIZE = "__frame_max_rows"
"""The name by which a claim reads how many rows to return."""


class BadCursor(Refused):
    """A cursor that this worker cannot read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A frame's rows.

    `first` is the number of the first row in its collection; numbers are unique over all frames,
    with gaps where a frame has fewer rows than it could have. `rest(n)` is the cursor of the
    rows after the first n; None: the rows belong to this frame and cannot be continued by
    another. `keys` order the rows where rows of one key must stay in one frame.
    """

    items: Sequence[Json]
    end: Mapping[str, Json]
    rest: Callable[[int], dict[str, Json]] | None = None
    first: int = 0
    keys: Sequence[str] | None = None
    exhausted: bool | None = None
    total: int | None = None
    """Rows of the whole collection, if known."""

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
    size = int((item.policy or {}).get("size") or 1)
    config = _config(cursor, {**scope, FRAME_SIZE: size})
    if kind == "keyset":
        return await _of_keyset(item, given, document, cursor, config, ports)
    if kind == "claim":
        return await _of_claim(item, cursor, config, size, ports, options)
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
        ranges = await offsets.of(ports).ranges(_topic(config))
        return offsets.split(offsets.bounded(ranges, config), size)
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
    rows = items[start:end]
    return Rows(items=rows, first=start, end=ended, rest=rest, total=len(items))


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

    first = _number(given, "first", 0)

    def rest(count: int) -> dict[str, Json]:
        return {**ended, "after": keys[count - 1], "first": first + count}

    return Rows(items=items, keys=keys, first=first, end=ended, rest=rest)


async def _of_claim(
    item: WorkItem,
    cursor: Cursor,
    config: Mapping[str, Json],
    size: int,
    ports: WorkerPorts,
    options: Options,
) -> Rows:
    if cursor.is_fenced:
        return await _of_fenced_claim(item, cursor, config, size, ports)
    ask = sql.asker(item, cursor.kind, ports)
    items = await sql.claim(ask, config, item.entity_id, size, options.name)
    # Only the last frames have fewer rows, so the numbers have no gaps before those.
    first = item.ordinal * size
    return Rows(items=items, first=first, end={"kind": "claim"}, exhausted=len(items) < size)


async def _of_fenced_claim(
    item: WorkItem, cursor: Cursor, config: Mapping[str, Json], size: int, ports: WorkerPorts
) -> Rows:
    """Return the rows of a claim that its fence stores, so that another frame can continue it."""
    given = item.cursor or {}
    owner, skipped = _number(given, "claimed_by", item.entity_id), _number(given, "skip", 0)
    first = _number(given, "first", item.ordinal * size)
    ask = sql.asker(item, cursor.kind, ports, fenced_by=owner)
    items: list[Json] = list(await ask(config, str(config.get("claim") or ""), {}))
    if cursor.is_whole:
        whole = [items] if items else []
        return Rows(items=whole, first=item.ordinal, end={"kind": "claim"}, exhausted=not items)

    def rest(count: int) -> dict[str, Json]:
        place: dict[str, Json] = {"skip": skipped + count, "first": first + count}
        return {"kind": "claim", "claimed_by": str(owner), **place}

    return Rows(
        items=items[skipped:], first=first, end={"kind": "claim"}, rest=rest, exhausted=not items
    )


async def _of_offsets(
    given: Mapping[str, Json], config: Mapping[str, Json], ports: WorkerPorts
) -> Rows:
    partition, start, end = (_number(given, name) for name in ("partition", "from", "to"))
    items = await offsets.of(ports).read(_topic(config), partition, start, end)
    ended: dict[str, Json] = {"kind": "offsets", "partition": partition, "from": start, "to": end}
    first = _number(given, "first", 0)

    def rest(count: int) -> dict[str, Json]:
        return {**ended, "from": items[count]["offset"], "first": first + count}

    return Rows(items=[dict(one) for one in items], first=first, end=ended, rest=rest)


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
