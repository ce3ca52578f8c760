"""Payloads of the golden corpus: content for every reference that its events have.

Recorded events refer to payloads that were not recorded. Each gets a content made from its
description, and the events are given the digest and length of that content instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import orjson
from blake3 import blake3

from streams.events.model import Json, PayloadRef
from streams.payload.arrow.rows import EncodedRows, decode_rows, encode_rows
from streams.payload.content import describe, key_of
from streams.payload.objects.blocks import NoCipher, pack
from streams.payload.port import ARROW, JSON, Compression, Scope
from streams.payload.store import PACKED_FROM_BYTES

Fields: TypeAlias = dict[str, Any]
_COMPRESSIONS: tuple[Compression, ...] = ("zstd", "lz4", "gzip", "none")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A payload that events refer to, as they describe it."""

    media_type: str
    row_count: int | None = None
    names: tuple[str, ...] = ()


class Payloads:
    """Makes payloads; `objects` are the stored bytes, `described` what is expected of them."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.described: dict[str, Fields] = {}

    def replaced(self, records: Iterable[Fields]) -> list[Fields]:
        """Return the envelopes of one log with references to payloads made here."""
        records = list(records)
        wanted = _wanted(records)
        return [self._replaced(record, wanted) for record in records]

    def _replaced(self, record: Fields, wanted: Mapping[str, Wanted]) -> Fields:
        scope = Scope(record["tenant_id"], record["organization_id"])

        def new(reference: Fields) -> Fields:
            digest = reference["sha256"]
            return self._reference(scope, reference, digest, wanted[digest])

        changed = {**record}
        if record["payload_ref"] is not None:
            changed["payload_ref"] = new(record["payload_ref"])
        for name in ("context", "result"):
            if record[name] is not None:
                value = _each_reference(orjson.loads(record[name]), new)
                changed[name] = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        return changed

    def _reference(self, scope: Scope, reference: Fields, digest: str, wanted: Wanted) -> Fields:
        variant = int(digest[:8], 16)
        data, rows = _content(wanted, variant)
        codec = _COMPRESSIONS[variant % 4] if len(data) >= PACKED_FROM_BYTES else "none"
        ref = describe(
            scope,
            data,
            media_type=wanted.media_type,
            row_count=None if rows is None else rows.row_count,
            schema_digest=None if rows is None else rows.schema_digest,
            compression=codec,
        )
        self.objects[key_of(ref)] = pack(scope, data, codec, NoCipher())
        self.described[key_of(ref)] = _described(ref, data)
        new: Fields = {**asdict(ref), "bytes": ref.byte_length}
        changed = {name: new.get(name, one) for name, one in reference.items()}
        if reference.get("ipc") is not None:
            changed["ipc"] = {**reference["ipc"], "schema_digest": ref.schema_digest or "0" * 64}
        return changed


def _described(ref: PayloadRef, data: bytes) -> Fields:
    """Return what is expected of a payload."""
    rows = decode_rows(data) if ref.media_type == ARROW else None
    return {
        "sha256": ref.sha256,
        "byte_length": ref.byte_length,
        "media_type": ref.media_type,
        "row_count": ref.row_count,
        "schema_digest": ref.schema_digest,
        "rows": None if rows is None else rows_digest(rows),
    }


def rows_digest(rows: Iterable[Json]) -> str:
    """Return the BLAKE3 of rows as canonical JSON, each followed by a newline."""
    option = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return blake3(b"".join(orjson.dumps(row, option=option) for row in rows)).hexdigest()


def _wanted(records: Iterable[Fields]) -> dict[str, Wanted]:
    """Return the payloads of a log by the digests that its events have for them."""
    found: dict[str, Wanted] = {}
    inner: dict[str, Wanted] = {}
    for record in records:
        if (reference := record["payload_ref"]) is not None:
            count = reference["row_count"]
            found.setdefault(reference["sha256"], Wanted(reference["media_type"], count))
        for name in ("context", "result"):
            for one in _references(orjson.loads(record[name] or "null")):
                kind = one.get("media_type") or one.get("content_type") or JSON
                names = tuple(one.get("names", ()))
                inner.setdefault(one["sha256"], Wanted(kind, one.get("row_count"), names))
    return {**inner, **found}


def _content(wanted: Wanted, variant: int) -> tuple[bytes, EncodedRows | None]:
    """Return the bytes of a payload, and of rows how they were encoded."""
    if wanted.media_type == ARROW:
        made = encode_rows(_rows(1 if wanted.row_count is None else wanted.row_count, variant))
        return made.data, made
    text = f"text {variant % 7} — Zoë ".encode() * (1 + 400 * (variant >> 4 & 1))
    values: dict[str, Json] = {name: text.decode() for name in wanted.names or ("data",)}
    return orjson.dumps({**values, "variant": variant % 7}), None


def _rows(count: int, variant: int) -> list[Json]:
    shapes = (_flat, _nested, _mixed)
    return [shapes[variant % 3](number) for number in range(count)]


def _flat(number: int) -> Json:
    return {"id": number, "name": f"row {number}", "score": number * 1.25 + 0.1, "ok": True}


def _nested(number: int) -> Json:
    return {
        "id": number,
        "place": {"city": "Zürich", "at": [number, number + 1]},
        "tags": [{"name": f"t{one}"} for one in range(number % 3)],
        "none": None,
    }


def _mixed(number: int) -> Json:
    row: dict[str, Json] = {"id": 2**53 - number, "value": number if number % 2 else str(number)}
    row["number"] = number if number % 2 else number + 0.5
    return row if number % 3 else {**row, "extra": {"empty": {}, "many": [1, 2.5, "x", None]}}


def _references(value: Json) -> Iterator[Fields]:
    if isinstance(value, dict):
        if isinstance(value.get("sha256"), str):
            yield value
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _each_reference(value: Json, new: Any) -> Json:
    """Return a value with every reference in it replaced."""
    if isinstance(value, list):
        return [_each_reference(inner, new) for inner in value]
    if not isinstance(value, dict):
        return value
    changed = new(value) if isinstance(value.get("sha256"), str) else value
    return {name: _each_reference(inner, new) for name, inner in changed.items()}
