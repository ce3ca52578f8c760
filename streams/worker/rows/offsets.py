"""Rows from a Kafka topic: ranges of offsets of its partitions."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from streams.errors import Refused
from streams.events.model import Json
from streams.worker.options import WorkerPorts
from streams.worker.port import Partitions


class NoBroker(Refused):
    """A loop over offsets where no broker is configured."""


def of(ports: WorkerPorts) -> Partitions:
    """Return what reads ranges."""
    if ports.partitions is None:
        raise NoBroker("a loop over a topic: this worker was given no broker to read from")
    return ports.partitions


def split(ranges: Mapping[int, tuple[int, int]], size: int) -> dict[str, Json]:
    """Cut every partition into ranges of at most `size` offsets.

    `rows` counts offsets: transaction markers and aborted records have one, too.
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
    """Return a record as a row. Objects and lists of JSON are read, other values stay text."""
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
