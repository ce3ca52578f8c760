"""Rows from a Kafka topic, as ranges of offsets."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from streams.errors import Refused
from streams.events.model import Json
from streams.worker.options import WorkerPorts
from streams.worker.port import Partitions


class NoBroker(Refused):
    """A loop reads a topic but no broker is configured."""


def of(ports: WorkerPorts) -> Partitions:
    """Return the reader of ranges."""
    if ports.partitions is None:
        raise NoBroker("a loop over a topic: this worker has no broker configured")
    return ports.partitions


class BadRange(Refused):
    """The range of a loop over a topic is not valid."""

    def __init__(self, name: str, value: Json) -> None:
        super().__init__(
            f"`{name}` of the cursor is {value!r}; give an offset for every partition, or a "
            "mapping of partitions to offsets"
        )


def bounded(
    ranges: Mapping[int, tuple[int, int]], config: Mapping[str, Json]
) -> dict[int, tuple[int, int]]:
    """Return the part of `ranges` from the offset `from` up to, excluding, `to`.

    Each is one offset for all partitions, or a mapping of partitions to offsets; partitions
    that a mapping does not name are read to their own bound.

    Raises:
        BadRange: one is neither.
    """
    found: dict[int, tuple[int, int]] = {}
    for partition, (low, high) in ranges.items():
        start = max(low, _bound(config, "from", partition, low))
        end = min(high, _bound(config, "to", partition, high))
        if start < end:
            found[partition] = (start, end)
    return found


def _bound(config: Mapping[str, Json], name: str, partition: int, usual: int) -> int:
    given = config.get(name)
    value = given
    if isinstance(given, dict):
        value = {str(key): each for key, each in given.items()}.get(str(partition))
    if value is None:
        return usual
    if isinstance(value, bool) or not str(value).isdecimal():
        raise BadRange(name, given)
    return int(str(value))


def split(ranges: Mapping[int, tuple[int, int]], size: int) -> dict[str, Json]:
    """Split every partition into ranges of at most `size` offsets.

    `rows` counts offsets, including transaction markers and aborted records.
    """
    windows: list[Json] = []
    total = 0
    for partition, (first, end) in sorted(ranges.items()):
        total += end - first
        windows += [[partition, at, min(at + size, end)] for at in range(first, end, size)]
    return {"ranges": windows, "rows": total}


def row_of(
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    headers: Mapping[str, bytes],
    timestamp_ms: int,
) -> dict[str, Json]:
    """Return a record as a row. JSON objects and lists are parsed, other values stay text."""
    return {
        "partition": partition,
        "offset": offset,
        "key": _text(key),
        "value": _value(value),
        "headers": {name: _text(one) for name, one in headers.items()},
        "timestamp_ms": timestamp_ms,
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _value(data: bytes | None) -> Json:
    if data is None:
        return None
    if data[:1] in (b"{", b"["):
        try:
            found: Json = orjson.loads(data)
        except orjson.JSONDecodeError:
            return _text(data)
        return found
    return _text(data)
