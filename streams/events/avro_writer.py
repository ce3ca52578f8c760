"""An Avro record writer, compiled from a schema.

fastavro tries the branches of every union for each record, which was half of the cost of an
append; all our unions are "null or something", so one check suffices. A test compares the
bytes with fastavro's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from streams.errors import Inconsistent

Write = Callable[[Mapping[str, Any], list[bytes]], None]
_KINDS = {"string": 0, "long": 1, "int": 1}
_STRING, _NUMBER, _RECORD = 0, 1, 2


class UnwritableSchema(Inconsistent):
    """The schema uses an unsupported part of Avro."""

    def __init__(self, schema: object) -> None:
        super().__init__(f"the envelope's writer does not support {schema!r}; extend it")


def compile_record(schema: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bytes]:
    """Return a function that encodes records of `schema`."""
    write = _record(schema)

    def encode(record: Mapping[str, Any]) -> bytes:
        parts: list[bytes] = []
        write(record, parts)
        return b"".join(parts)

    return encode


@lru_cache(maxsize=4096)
def zigzag(number: int) -> bytes:
    """Return Avro's variable-length encoding; cached, since roots and times repeat."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_SMALL = [zigzag(number) for number in range(1024)]
_NULL, _PRESENT = b"\x00", b"\x02"


def _record(schema: Mapping[str, Any]) -> Write:
    fields = [(field["name"], *_field(field["type"])) for field in schema["fields"]]

    # One loop without calls: this is the hottest code.
    def write(record: Mapping[str, Any], parts: list[bytes]) -> None:
        append = parts.append
        for name, optional, kind, write_inner in fields:
            value: Any = record.get(name)
            if optional:
                if value is None:
                    append(_NULL)
                    continue
                append(_PRESENT)
            if kind == _STRING:
                data = value.encode()
                size = len(data)
                append(_SMALL[size] if size < 1024 else zigzag(size))
                append(data)
            elif kind == _NUMBER:
                append(_SMALL[value] if 0 <= value < 1024 else zigzag(value))
            else:
                write_inner(value, parts)

    return write


def _field(schema: Any) -> tuple[bool, int, Any]:
    """Return whether a field may be null, its kind, and the writer of an inner record."""
    if isinstance(schema, list):
        if len(schema) != 2 or schema[0] != "null":
            raise UnwritableSchema(schema)
        return (True, *_field(schema[1])[1:])
    if isinstance(schema, dict):
        if schema["type"] == "record":
            return False, _RECORD, _record(schema)
        return _field(schema["type"])
    if schema not in _KINDS:
        raise UnwritableSchema(schema)
    return False, _KINDS[schema], None
