"""Rows for `noetl.append` in Postgres's binary format.

The native sealer produces these bytes; asyncpg would otherwise encode 38 columns per row.
"""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from streams.events.native import NativeModule
from streams.events.seal import Sealed
from streams.log.rows import new_event_row

_TYPE = """
SELECT t.oid, t.typarray, array_agg(a.atttypid::bigint ORDER BY a.attnum) AS columns
FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid
WHERE t.oid = 'noetl.new_event'::regtype AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY t.oid, t.typarray"""


class RawRows:
    """Encodes the argument of `noetl.append` for one connection."""

    def __init__(self, native: NativeModule, element: int) -> None:
        self._native, self._element = native, element

    @classmethod
    async def open(cls, native: NativeModule, connection: asyncpg.Connection) -> RawRows | None:
        """Make `connection` send encoded rows unchanged; None if the row type differs."""
        found = await connection.fetchrow(_TYPE)
        if found is None or found["columns"] != native.COLUMNS:
            return None
        # Like `set_type_codec`, which does not support arrays.
        connection._protocol.get_settings().add_python_codec(
            found["typarray"], "new_event[]", "noetl", [], "scalar", _identity, _identity, "binary"
        )
        return cls(native, found["oid"])

    def __call__(self, batches: Sequence[Sequence[Sealed]]) -> bytes:
        """Return the rows of `batches`, numbered from 0."""
        return self._native.rows(batches, self._element, new_event_row)


def _identity(data: bytes) -> bytes:
    return data
