"""Payloads as values, of no more bytes than a task is handed."""

from __future__ import annotations

from typing import Any

from streams.envelope.model import PayloadRef
from streams.payload.reading import Source, TooLargeToRead, read_value
from streams.worker.errors import VALUE_BYTES, TooLargeAValue


async def handed(source: Source, ref: PayloadRef, most: int = VALUE_BYTES) -> Any:
    """Return the value behind `ref`, as `read_value` does.

    Raises:
        TooLargeAValue: with all that it is made of, it has more than `most` bytes.
    """
    try:
        return await read_value(source, ref, most)
    except TooLargeToRead as error:
        raise TooLargeAValue(ref.uri, error.found, most) from error
