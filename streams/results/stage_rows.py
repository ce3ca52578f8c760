"""Rows of a stage joined into one Arrow table, across its frames' schemas."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streams.errors import Refused
from streams.events.model import Json, PayloadRef
from streams.payload.arrow.rows import encode_rows, is_values, read_table
from streams.payload.arrow.unify import unify
from streams.payload.errors import PayloadCorrupt
from streams.payload.port import ARROW
from streams.results.reading import (
    MANIFEST,
    PayloadSource,
    RowCheck,
    RowsPart,
    TooLargeToRead,
    decode,
    decode_manifest,
    each,
    listed,
    read_value,
    scope_of,
)

WHOLE_BYTES = 64 << 20
"""Default limit on the bytes of a stage's frames that are joined in memory."""


class TooLargeToJoin(Refused):
    """A stage is too large for one table."""

    def __init__(self, ref: PayloadRef, found: int, most: int) -> None:
        super().__init__(
            f"{ref.uri}: its rows have {found} bytes, more than the {most} that are joined into "
            "one table; read the frames one by one, or request JSON, which is streamed"
        )


async def read_stage(
    source: PayloadSource, ref: PayloadRef, most: int = WHOLE_BYTES, check: RowCheck | None = None
) -> pa.Table:
    """Return the rows of a manifest, or of a single frame, as one table.

    Frames of equal schema are joined without reading their values. Rows that are references
    are passed to `check` and followed, as `read_value` does.

    Raises:
        TooLargeToJoin: the frames and what their rows refer to have more than `most` bytes.
        Refused: a manifest names payloads of another owner, or too many rows.
        PayloadMissing, PayloadCorrupt, PayloadUnavailable: it cannot be read.
    """
    if ref.byte_length > most:
        raise TooLargeToJoin(ref, ref.byte_length, most)
    if ref.media_type == ARROW:
        return read_table(await source.get(ref), ref.uri)
    if ref.media_type != MANIFEST:
        raise PayloadCorrupt(ref.uri, f"{ref.media_type} holds no rows")
    parts = decode_manifest(await source.get(ref), scope_of(ref))
    found = sum(part.ref.byte_length for part in parts if part.ref is not None)
    if found > most:
        raise TooLargeToJoin(ref, found, most)
    tables = await _tables(source, parts)
    if any(_may_refer(table.schema) for table in tables):
        try:
            return _encoded(listed(ref, await read_value(source, ref, most, check)))
        except TooLargeToRead as error:
            raise TooLargeToJoin(ref, error.found, most) from error
    try:
        return unify(tables)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise PayloadCorrupt(ref.uri, f"its rows do not match their schema: {error}") from error


def written(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


async def _tables(source: PayloadSource, parts: Sequence[RowsPart]) -> list[pa.Table]:
    async def table(ref: PayloadRef) -> pa.Table:
        if ref.media_type == ARROW:
            return read_table(await source.get(ref), ref.uri)
        return _encoded(listed(ref, decode(ref, await source.get(ref))))

    found = await each([part.ref for part in parts if part.ref is not None], table)
    return [
        _encoded([None] * part.rows) if part.ref is None else found[part.ref.uri] for part in parts
    ]


def _encoded(rows: Sequence[Json]) -> pa.Table:
    return read_table(encode_rows(rows).data)


def _may_refer(schema: pa.Schema) -> bool:
    """Whether rows may be references to results: these are objects with `kind` and `meta`."""
    kind = schema.field(0).type if is_values(schema) else None
    if kind is None:
        return {"kind", "meta"} <= set(schema.names)
    if pa.types.is_struct(kind):
        return {"kind", "meta"} <= {kind.field(n).name for n in range(kind.num_fields)}
    return bool(schema.field(0).metadata)
