"""Rows for the database's append, sent as the bytes that Postgres receives.

The native sealer has made these bytes already; asyncpg would otherwise take each row apart
and put its 38 columns together again.
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
    """Makes the argument of `noetl.append` for one connection."""

    def __init__(self, native: NativeModule, element: int) -> None:
        self._native, self._element = native, element

    @classmethod
    async def open(cls, native: NativeModule, connection: asyncpg.Connection) -> RawRows | None:
        """Teach `connection` to send such rows as they are; None: this database has others."""
        found = await connection.fetchrow(_TYPE)
        if found is None or found["columns"] != native.COLUMNS:
            return None
        # What `set_type_codec` does, which refuses to do it for arrays.
        connection._protocol.get_settings().add_python_codec(
            found["typarray"], "new_event[]", "noetl", [], "scalar", _as_is, _as_is, "binary"
        )
        return cls(native, found["oid"])

    def __call__(self, batches: Sequence[Sequence[Sealed]]) -> bytes:
        """Return the rows of `batches`, numbered from 0."""
        return self._native.rows(batches, self._element, new_event_row)


def _as_is(data: bytes) -> bytes:
    return data
