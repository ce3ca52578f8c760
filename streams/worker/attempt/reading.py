"""Payloads read as values, up to the size a task may be passed."""

from __future__ import annotations

from collections.abc import Collection

from streams.events.model import Json, PayloadRef
from streams.results.reading import (
    MANIFEST,
    PayloadSource,
    RowCheck,
    TooLargeToRead,
    read_some,
    read_value,
)
from streams.worker.errors import VALUE_BYTES, ValueTooLarge


async def handed(
    source: PayloadSource,
    ref: PayloadRef,
    most: int = VALUE_BYTES,
    places: Collection[int] | None = None,
    check: RowCheck | None = None,
) -> Json:
    """Return the value behind `ref`, as `read_value` does; or some rows, as `read_some` does.

    Raises:
        ValueTooLarge: with its parts, it has more than `most` bytes.
    """
    try:
        if places is not None and ref.media_type == MANIFEST:
            return await read_some(source, ref, places, most)
        return await read_value(source, ref, most, check)
    except TooLargeToRead as error:
        raise ValueTooLarge(ref.uri, error.found, most) from error
