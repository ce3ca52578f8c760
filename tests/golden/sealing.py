"""Sealing of envelopes for the golden corpus: checksums, chains and times of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from streams.events.canonical import canonical_fields, checksum
from streams.replay.port import NO_CHAIN, StoredEvent
from tests.golden.corpus import Stored
from tests.golden.payloads import Fields
from tests.support.events.examples import codec


class Unsealed(NamedTuple):
    """An envelope's record, and its place in the log."""

    record: Fields
    seq: int
    position: int
    stream_version: int
    at: datetime
    """In milliseconds; sealing adds microseconds, as Postgres has them."""


@dataclass(slots=True)
class _Root:
    chain: bytes = NO_CHAIN
    at: datetime | None = None
    count: int = field(default=0)
    """Events that were stored in the same millisecond."""


def sealed_log(events: Iterable[Unsealed]) -> list[Stored]:
    """Return the events as the log stores them."""
    roots: dict[str, _Root] = {}
    return [_sealed(one, roots) for one in events]


def _sealed(one: Unsealed, roots: dict[str, _Root]) -> Stored:
    name = f"{one.record['root_type']}/{one.record['root_id']}"
    root = roots.setdefault(name, _Root())
    digest = checksum(canonical_fields(one.record))
    root.chain = sha256(root.chain + bytes.fromhex(digest)).digest()
    root.count = root.count + 1 if root.at == one.at else 0
    root.at = one.at
    stored = StoredEvent(
        seq=one.seq,
        position=one.position,
        stream_version=one.stream_version,
        ingest_time=one.at + timedelta(microseconds=min(root.count, 999)),
        checksum=bytes.fromhex(digest),
        chain=root.chain,
        envelope=codec().encode({**one.record, "checksum": digest}),
    )
    return Stored(name, stored)
