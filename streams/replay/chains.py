"""Chains of a log: as it stores them, and computed again from its envelopes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from streams.errors import PoisonRecord
from streams.events.canonical import canonical_fields, checksum
from streams.events.codec import Codec
from streams.events.model import Root
from streams.replay.errors import TamperedLog
from streams.replay.port import NO_CHAIN, StoredEvent, StoredLog
from streams.replay.verified import PAGE
from streams.schema.registry import UnknownSchemaId

_BYTES = len(NO_CHAIN)


class StoredChain:
    """The chain as a log stores it; each place is one read of one event."""

    def __init__(self, log: StoredLog, root: Root) -> None:
        self._log, self._root = log, root

    async def at(self, seq: int) -> bytes:
        """Return the stored chain at a place.

        Raises:
            TamperedLog: the event is missing.
        """
        found = await self._log.page(self._root, after_seq=seq - 1, through_seq=seq, limit=1)
        if not found:
            raise TamperedLog(self._root, seq, None, "the event is missing")
        return found[0].chain


class PackedChain:
    """A chain in memory, 32 bytes a link."""

    def __init__(self) -> None:
        self.links = bytearray()

    def __len__(self) -> int:
        return len(self.links) // _BYTES

    def append(self, link: bytes) -> None:
        """Add the next link."""
        self.links += link

    async def at(self, seq: int) -> bytes:
        """Return the chain at a place."""
        return bytes(self.links[(seq - 1) * _BYTES : seq * _BYTES])


class ReadChains(NamedTuple):
    """Both chains of a log, from one pass over its events."""

    stored: PackedChain
    computed: PackedChain
    """From the content of the envelopes alone; no stored checksum or chain was trusted."""


async def read_chains(log: StoredLog, codec: Codec, root: Root, length: int) -> ReadChains:
    """Read the events up to `length`, and compute the chain again.

    A missing event has a stored chain of zeros.

    Raises:
        Unavailable: the log cannot be read.
    """
    found = ReadChains(PackedChain(), PackedChain())
    link, seq = NO_CHAIN, 0
    while seq < length:
        page = await log.page(root, after_seq=seq, through_seq=length, limit=PAGE)
        for one in page or (None,):
            until = length + 1 if one is None else one.seq
            while seq + 1 < until:
                seq += 1
                link = hashlib.sha256(link).digest()
                found.stored.append(NO_CHAIN)
                found.computed.append(link)
            if one is None:
                break
            seq = one.seq
            link = hashlib.sha256(link + await _content_checksum(codec, one)).digest()
            found.stored.append(one.chain)
            found.computed.append(link)
    return found


async def _content_checksum(codec: Codec, one: StoredEvent) -> bytes:
    """Return the checksum of an envelope's fields; of its bytes, if they do not decode."""
    try:
        await codec.learn(one.envelope)
        return bytes.fromhex(checksum(canonical_fields(codec.record(one.envelope))))
    except (PoisonRecord, UnknownSchemaId, ValueError, OverflowError):
        return hashlib.sha256(one.envelope).digest()


def first_unequal(a: PackedChain, b: PackedChain) -> int | None:
    """Return the first place where two chains differ, even if later places are equal again."""
    if a.links == b.links:
        return None
    pairs = zip(_each(a), _each(b), strict=True)
    return next(seq for seq, (one, other) in enumerate(pairs, 1) if one != other)


def _each(chain: PackedChain) -> Sequence[bytes]:
    links = bytes(chain.links)
    return [links[begin : begin + _BYTES] for begin in range(0, len(links), _BYTES)]
