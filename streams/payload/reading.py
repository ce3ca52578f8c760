"""Payloads as values: JSON, text, Arrow rows, and manifests, which are rows of many payloads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from streams.envelope.locator import Locator, parse
from streams.envelope.model import Json, PayloadRef
from streams.payload.content import reference_from, reference_json
from streams.payload.errors import PayloadCorrupt
from streams.payload.port import ARROW, JSON, Scope
from streams.payload.results import is_reference, payload_of

MANIFEST = "application/vnd.noetl.manifest+json"
"""The media type of a list of payloads that hold the rows of a loop, in the rows' order."""
_AT_ONCE = 8


class Source(Protocol):
    """Whatever gives the bytes behind a reference."""

    async def get(self, ref: PayloadRef) -> bytes:
        """Return them, checked."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a loop: the payload that has them, or None where no row gave anything."""

    rows: int
    ref: PayloadRef | None


def encode_manifest(parts: Sequence[Part]) -> bytes:
    """Return a manifest; the same parts give the same bytes."""
    listed = [
        {"rows": part.rows, "ref": None if part.ref is None else reference_json(part.ref)}
        for part in parts
    ]
    return orjson.dumps({"parts": listed}, option=orjson.OPT_SORT_KEYS)


def decode_manifest(data: bytes) -> list[Part]:
    """Read a manifest.

    Raises:
        PayloadCorrupt: it is none.
    """
    try:
        return [
            Part(part["rows"], None if part["ref"] is None else reference_from(part["ref"]))
            for part in orjson.loads(data)["parts"]
        ]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise PayloadCorrupt("manifest", f"not a list of payloads: {error!r}") from error


async def read_value(source: Source, ref: PayloadRef) -> Any:
    """Return the value behind a reference; a manifest's rows are read from all its parts.

    Raises:
        PayloadMissing, PayloadCorrupt, PayloadUnavailable: it cannot be had.
    """
    data = await source.get(ref)
    if ref.media_type == MANIFEST:
        return await _rows(source, decode_manifest(data), scope_of(ref))
    return decode(ref.media_type, data)


def decode(media_type: str, data: bytes) -> Any:
    """Return the value that bytes of a media type are; bytes of any other kind as text."""
    if media_type == ARROW:
        from streams.payload.rows import decode_rows  # 25 MB that most processes can spare

        return decode_rows(data)
    if media_type == JSON:
        return orjson.loads(data)
    return data.decode("utf-8", "replace")


def scope_of(ref: PayloadRef) -> Scope:
    """Return whose payload a reference names."""
    place = parse(ref.uri)
    if not isinstance(place, Locator) or place.org is None:
        raise PayloadCorrupt(ref.uri, "the reference names no payload")
    return Scope(place.tenant, place.org)


async def _rows(source: Source, parts: Sequence[Part], scope: Scope) -> list[Json]:
    refs = [part.ref for part in parts if part.ref is not None]
    found = await each(refs, lambda ref: read_value(source, ref))
    rows: list[Json] = []
    for part in parts:
        rows += [None] * part.rows if part.ref is None else found[part.ref.uri]
    inner = [payload_of(row, scope) for row in rows if is_reference(row)]  # type: ignore[arg-type]
    if not inner:
        return rows
    values = await each(inner, lambda ref: read_value(source, ref))
    return [
        values[payload_of(row, scope).uri]
        if isinstance(row, Mapping) and is_reference(row)
        else row
        for row in rows
    ]


async def each(
    refs: Sequence[PayloadRef], read: Callable[[PayloadRef], Awaitable[Any]]
) -> dict[str, Any]:
    """Read each payload once, a few at a time."""
    room, wanted = asyncio.Semaphore(_AT_ONCE), {ref.uri: ref for ref in refs}

    async def one(ref: PayloadRef) -> Any:
        async with room:
            return await read(ref)

    found = await asyncio.gather(*(one(ref) for ref in wanted.values()))
    return dict(zip(wanted, found, strict=True))
