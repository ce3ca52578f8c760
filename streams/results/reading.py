"""Payloads read as values: JSON, text, Arrow rows, and manifests (rows of many payloads)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

import orjson

from streams.errors import Refused
from streams.events.locator import Locator, parse
from streams.events.model import Json, PayloadRef
from streams.payload.content import check_owner, reference_from, reference_json
from streams.payload.errors import PayloadCorrupt
from streams.payload.media import is_json, text_of
from streams.payload.port import ARROW, Scope
from streams.results.reference import ResultRef, is_reference

MANIFEST = "application/vnd.noetl.manifest+json"
"""The media type of a list of payloads that hold the rows of a loop, in the rows' order."""
MOST_ROWS = 10_000_000
"""Most rows of a loop that are read at once; a small manifest can claim any number."""
RowCheck = Callable[[Mapping[str, Json]], Awaitable[None]]
"""Checks a row that refers to a stored result; its errors are passed on."""
_AT_ONCE = 8
_DIGEST = re.compile(r"[0-9a-f]{64}")


class TooManyRows(Refused):
    """A loop has more rows than can be read at once."""

    def __init__(self) -> None:
        super().__init__(
            f"the loop has more than {MOST_ROWS:,} rows, too many to be read at once; "
            "read its frames' payloads one by one"
        )


class TooLargeToRead(Refused):
    """A value, with its parts and their references, exceeds the reader's limit."""

    def __init__(self, uri: str, found: int, most: int) -> None:
        super().__init__(f"{uri} has {found} bytes or more, and at most {most} are read at once")
        self.found, self.most = found, most


class PayloadSource(Protocol):
    """Reads the bytes behind a reference."""

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the verified bytes."""
        ...


@dataclass(frozen=True, slots=True)
class RowsPart:
    """Some rows of a loop, and their payload; None if no row has output."""

    rows: int
    ref: PayloadRef | None
    of: str | None = None
    """The prefix of the names of the loop's results; None: unknown."""


def encode_manifest(parts: Sequence[RowsPart]) -> bytes:
    """Encode a manifest, deterministically."""
    listed = [
        {"rows": part.rows, "ref": None if part.ref is None else reference_json(part.ref)}
        for part in parts
    ]
    whole: dict[str, object] = {"parts": listed}
    if of := next((part.of for part in parts), None):
        whole["of"] = of  # once: they are parts of one loop
    return orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)


def decode_manifest(data: bytes, owner: Scope) -> list[RowsPart]:
    """Decode an untrusted manifest; every part must belong to the owner.

    Raises:
        PayloadCorrupt: it is not a manifest.
        PayloadForeign, BadLocator: a part belongs to another owner, or is not a payload.
        TooManyRows: it has too many rows.
    """
    try:
        whole = orjson.loads(data)
        of = whole.get("of")
        parts = [_part(part, owner, None if of is None else str(of)) for part in whole["parts"]]
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise PayloadCorrupt("manifest", f"not a list of payloads: {error!r}") from error
    if sum(part.rows for part in parts) > MOST_ROWS:
        raise TooManyRows
    return parts


def _part(fields: Mapping[str, Json], owner: Scope, of: str | None) -> RowsPart:
    rows, ref = fields["rows"], fields["ref"]
    if not _is_count(rows):
        raise ValueError(f"a part with {rows!r} rows")
    if ref is None:
        return RowsPart(rows, None, of)
    if not isinstance(ref, dict):
        raise ValueError("a part whose reference is not valid")
    found = reference_from(ref)
    texts = (found.uri, found.sha256, found.media_type)
    if not _is_count(found.byte_length) or not all(isinstance(one, str) for one in texts):
        raise ValueError("a part whose reference is not valid")
    if found.media_type == MANIFEST:
        raise ValueError("a manifest as a part of a manifest")
    return RowsPart(rows, check_owner(owner, found), of)


def _is_count(value: Json) -> TypeGuard[int]:
    return type(value) is int and value >= 0


async def read_value(
    source: PayloadSource, ref: PayloadRef, most: int | None = None, check: RowCheck | None = None
) -> Json:
    """Return the value behind a reference; a manifest's rows are read from all its parts.

    Rows that are separate results are passed to `check` before they are read.

    Raises:
        TooLargeToRead: it has more than `most` bytes in total; the rest is not fetched.
        PayloadMissing, PayloadCorrupt, PayloadUnavailable: it cannot be read.
        Refused: a manifest names payloads of another owner, or too many rows.
    """
    budget = _Budget(ref.uri, most)
    budget.take([ref])
    data = await source.get(ref)
    if ref.media_type == MANIFEST:
        owner = scope_of(ref)
        return await _rows(source, decode_manifest(data, owner), owner, budget, check)
    return decode(ref, data)


async def read_some(
    source: PayloadSource, ref: PayloadRef, places: Collection[int], most: int | None = None
) -> list[Json]:
    """Return the rows of a manifest, where only those at `places` are guaranteed.

    A negative place counts from the end. Frames without any of them are not fetched; their rows
    are null.

    Raises:
        As `read_value`.
    """
    budget = _Budget(ref.uri, most)
    budget.take([ref])
    owner = scope_of(ref)
    parts = decode_manifest(await source.get(ref), owner)
    if all(part.ref is None or part.ref.row_count == part.rows for part in parts):
        total = sum(part.rows for part in parts)
        wanted = {place if place >= 0 else total + place for place in places}
        first = 0
        for n, part in enumerate(parts):
            if not any(first <= place < first + part.rows for place in wanted):
                parts[n] = replace(part, ref=None)
            first += part.rows
    return await _rows(source, parts, owner, budget)


class _Budget:
    """Counts the bytes to fetch, each payload once."""

    def __init__(self, uri: str, most: int | None) -> None:
        self._uri, self._most, self._taken = uri, most, 0

    def take(self, refs: Iterable[PayloadRef]) -> None:
        self._taken += sum(size for _, size in {(ref.uri, ref.byte_length) for ref in refs})
        if self._most is not None and self._taken > self._most:
            raise TooLargeToRead(self._uri, self._taken, self._most)


def decode(ref: PayloadRef, data: bytes) -> Json:
    """Return a payload's value; an unknown media type becomes text or else base64.

    Raises:
        PayloadCorrupt: they do not match the reference.
    """
    if ref.media_type == ARROW:
        from streams.payload.arrow.rows import decode_rows  # 25 MB that most processes do not need

        return decode_rows(data)
    if is_json(ref.media_type):
        try:
            found: Json = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise PayloadCorrupt(ref.uri, f"it is not JSON: {error}") from error
        return found
    return text_of(data, ref.media_type)[0]


def listed(ref: PayloadRef, value: Json) -> list[Json]:
    """Return the value of a manifest's part, which must be rows.

    Raises:
        PayloadCorrupt: it is something else.
    """
    if not isinstance(value, list):
        raise PayloadCorrupt(ref.uri, "part of a manifest, but not a list of rows")
    return value


def followed(row: Json, owner: Scope, of: str | None = None) -> PayloadRef | None:
    """Return the payload that a row refers to; None if the row is a plain value.

    A row that only looks like a reference, that names a whole loop, or a result of another
    loop or step than `of`, is a plain value.
    """
    if not is_reference(row):
        return None
    if of is not None and not str(row.get("ref")).startswith(of):
        return None
    meta = row["meta"]
    if not isinstance(meta, dict) or meta.get("content_type") == MANIFEST:
        return None
    is_whole = _is_count(meta.get("bytes")) and _DIGEST.fullmatch(str(meta.get("sha256")))
    return ResultRef(row).payload(owner) if is_whole else None


def scope_of(ref: PayloadRef) -> Scope:
    """Return the owner of a reference's payload."""
    place = parse(ref.uri)
    if not isinstance(place, Locator) or place.org is None:
        raise PayloadCorrupt(ref.uri, "the reference is not one of a payload")
    return Scope(place.tenant, place.org)


async def _rows(
    source: PayloadSource,
    parts: Sequence[RowsPart],
    owner: Scope,
    budget: _Budget,
    check: RowCheck | None = None,
) -> list[Json]:
    async def read(ref: PayloadRef) -> Json:
        return decode(ref, await source.get(ref))

    async def read_all(refs: Sequence[PayloadRef]) -> dict[str, Json]:
        budget.take(refs)
        return await each(refs, read)

    found = await read_all([part.ref for part in parts if part.ref is not None])
    rows: list[Json] = []
    inner: list[PayloadRef | None] = []
    for part in parts:
        if part.ref is None:
            rows += [None] * part.rows
        else:
            rows += listed(part.ref, found[part.ref.uri])
        if len(rows) > MOST_ROWS:
            raise TooManyRows
        inner += [followed(row, owner, part.of) for row in rows[len(inner) :]]
    if not any(inner):
        return rows
    for row, ref in zip(rows, inner, strict=True):
        if ref is not None and check is not None and isinstance(row, dict):
            await check(row)
    values = await read_all([ref for ref in inner if ref is not None])
    return [row if ref is None else values[ref.uri] for row, ref in zip(rows, inner, strict=True)]


async def each(
    refs: Sequence[PayloadRef], read: Callable[[PayloadRef], Awaitable[Json]]
) -> dict[str, Json]:
    """Read each payload once, a few at a time."""
    room, wanted = asyncio.Semaphore(_AT_ONCE), {ref.uri: ref for ref in refs}

    async def one(ref: PayloadRef) -> Json:
        async with room:
            return await read(ref)

    found = await asyncio.gather(*(one(ref) for ref in wanted.values()))
    return dict(zip(wanted, found, strict=True))
