"""A writer for one Avro record, compiled from its schema.

The envelope is encoded once for every event there is. fastavro tries the branches of every
union anew for each record, which was half of the cost of an append; all our unions are
"null or something", so one look is enough. A test holds the bytes equal to fastavro's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streams.errors import Inconsistent

Write = Callable[[Any, list[bytes]], None]
_STRINGS = ("string",)
_NUMBERS = ("long", "int")


class UnwritableSchema(Inconsistent):
    """The schema uses a part of Avro that the envelope does not need."""

    def __init__(self, schema: object) -> None:
        super().__init__(f"the envelope's writer does not know {schema!r}; teach it, with a test")


def compile_record(schema: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bytes]:
    """Return a function that encodes records of `schema`."""
    write = _record(schema)

    def encode(record: Mapping[str, Any]) -> bytes:
        parts: list[bytes] = []
        write(record, parts)
        return b"".join(parts)

    return encode


def zigzag(number: int) -> bytes:
    """Return Avro's variable-length bytes of a whole number."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_SMALL = [zigzag(number) for number in range(4096)]


def _record(schema: Mapping[str, Any]) -> Write:
    fields = [(field["name"], _writer(field["type"])) for field in schema["fields"]]

    def write(record: Any, parts: list[bytes]) -> None:
        for name, write_field in fields:
            write_field(record.get(name), parts)

    return write


def _writer(schema: Any) -> Write:
    if isinstance(schema, dict):
        return _record(schema) if schema["type"] == "record" else _writer(schema["type"])
    if isinstance(schema, list):
        return _optional(schema)
    if schema in _STRINGS:
        return _string
    if schema in _NUMBERS:
        return _number
    raise UnwritableSchema(schema)


def _optional(schema: list[Any]) -> Write:
    if len(schema) != 2 or schema[0] != "null":
        raise UnwritableSchema(schema)
    write_value = _writer(schema[1])

    def write(value: Any, parts: list[bytes]) -> None:
        if value is None:
            parts.append(b"\x00")
        else:
            parts.append(b"\x02")
            write_value(value, parts)

    return write


def _string(value: str, parts: list[bytes]) -> None:
    data = value.encode()
    size = len(data)
    parts.append(_SMALL[size] if size < 4096 else zigzag(size))
    parts.append(data)


def _number(value: int, parts: list[bytes]) -> None:
    parts.append(_SMALL[value] if 0 <= value < 4096 else zigzag(value))
