"""The optional native module (crates/sealer).

It seals clearly valid events with identical bytes; everything else falls back to the Python
code. `STREAMS_SEALER=python` disables it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

import orjson

INTERFACE = 6
"""The supported version of the module; others are ignored."""


class NativeModule(Protocol):
    """The used part of the native module."""

    SHAPE: str
    COLUMNS: list[int]
    Sealer: Any
    EventReader: Any

    def record(self, data: bytes, /) -> dict[str, Any]:
        """Return the fields of an envelope."""
        ...

    def match_checksums(self, envelopes: Sequence[bytes], /) -> list[bool]:
        """Return for each envelope whether it surely matches its checksum."""
        ...

    def rows(
        self,
        batches: Sequence[Sequence[object]],
        element: int,
        row_of: Callable[..., tuple[object, ...]],
        /,
    ) -> bytes:
        """Return the rows of `batches` in Postgres's binary format."""
        ...


@lru_cache(maxsize=1)
def native() -> NativeModule | None:
    """Return the native module, or None if there is no compatible one."""
    if os.environ.get("STREAMS_SEALER", "") == "python":
        return None
    try:
        found = importlib.import_module("streams_native")
    except ImportError:
        return None
    fits = getattr(found, "INTERFACE", None) == INTERFACE
    return cast(NativeModule, found) if fits else None


def understands(module: NativeModule, schema: str) -> bool:
    """Return whether `module` was built for this Avro schema."""
    return shape(schema) == module.SHAPE


@lru_cache(maxsize=8)
def shape(schema: str) -> str:
    """Return the names and types of a schema's fields, in order."""
    return _fields(orjson.loads(schema))


def _fields(record: Mapping[str, Any]) -> str:
    return " ".join(f"{field['name']}:{_type(field['type'])}" for field in record["fields"])


def _type(schema: object) -> str:
    if isinstance(schema, list):
        return "|".join(_type(inner) for inner in schema).removeprefix("null|") + "?"
    if isinstance(schema, dict):
        return f"({_fields(schema)})" if schema["type"] == "record" else _type(schema["type"])
    return str(schema)
