"""Results streamed as JSON text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence

import orjson

from streams.errors import Refused
from streams.events.model import Json, PayloadRef
from streams.payload.content import scope_of
from streams.payload.media import is_json
from streams.payload.port import ARROW, PayloadStore, Scope
from streams.results.reading import (
    MANIFEST,
    RowCheck,
    RowsPart,
    decode,
    decode_manifest,
    followed,
    listed,
)

WHOLE_BYTES = 64 << 20
"""The largest payload that is loaded whole to be parsed as JSON."""
_ROWS = 500


class TooLargeForJson(Refused):
    """A payload is too large to convert to JSON."""

    def __init__(self, ref: PayloadRef) -> None:
        super().__init__(
            f"{ref.uri} has {ref.byte_length} bytes, more than the {WHOLE_BYTES} that can be "
            "converted to JSON; fetch the payload itself"
        )


async def as_json(
    store: PayloadStore, ref: PayloadRef, check: RowCheck | None = None
) -> AsyncIterator[bytes]:
    """Yield the value behind a reference as JSON; of a manifest, the rows of all its parts.

    Rows that are separate results are passed to `check` before they are read.

    Raises:
        TooLargeForJson: a part is too large.
        Refused: a manifest names payloads of another owner, or too many rows.
        PayloadBomb: a part has too many rows.
        PayloadMissing, PayloadCorrupt, PayloadUnavailable: a part cannot be read.
    """
    if is_json(ref.media_type) and ref.media_type != MANIFEST:
        async for piece in store.fetch(ref):
            yield piece
        return
    if ref.byte_length > WHOLE_BYTES:
        raise TooLargeForJson(ref)
    data = await store.get(ref)
    if ref.media_type == MANIFEST:
        owner = scope_of(ref)
        parts = _parts(store, decode_manifest(data, owner), owner, check)
    elif ref.media_type == ARROW:
        parts = _arrow(data)
    else:
        yield _dumps(decode(ref, data))
        return
    opening = b"["
    async for part in parts:
        yield opening + part if opening else part
        opening = b""
    yield opening + b"]"


async def _parts(
    store: PayloadStore, parts: Sequence[RowsPart], owner: Scope, check: RowCheck | None
) -> AsyncIterator[bytes]:
    comma = b""
    for part in parts:
        if part.ref is None:
            for at in range(0, part.rows, _ROWS):
                yield comma + b",".join([b"null"] * min(_ROWS, part.rows - at))
                comma = b","
            continue
        if part.ref.byte_length > WHOLE_BYTES:
            raise TooLargeForJson(part.ref)
        for row in _each(part.ref, await store.get(part.ref)):
            if (inner := followed(row, owner, part.of)) is not None:
                if check is not None and isinstance(row, dict):
                    await check(row)
                yield comma
                async for piece in as_json(store, inner):
                    yield piece
            else:
                yield comma + _dumps(row)
            comma = b","


def _each(ref: PayloadRef, data: bytes) -> Iterator[Json]:
    if ref.media_type == ARROW:
        for some in _slices(data):
            yield from some
        return
    yield from listed(ref, decode(ref, data))


def _slices(data: bytes) -> Iterator[list[Json]]:
    from streams.payload.arrow.rows import check_rows, read_table, rows_of

    table = read_table(data)
    check_rows(table)
    for at in range(0, table.num_rows, _ROWS):
        yield rows_of(table.slice(at, _ROWS))


async def _arrow(data: bytes) -> AsyncIterator[bytes]:
    comma = b""
    for rows in _slices(data):
        yield comma + _dumps(rows)[1:-1]
        comma = b","


def _dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()
