"""Shared memory of a node: regions in a broker or in files, found by hints.

If sealing is enabled and a broker answers, it holds the regions; else they are files. Hints
to either are followed.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from streams.clock import Clock
from streams.events.canonical import from_millis, millis
from streams.events.model import IpcHint, PayloadRef
from streams.payload.content import key_of
from streams.payload.shm.files import FileRegions
from streams.payload.shm.header import Header
from streams.payload.shm.memfd import SealedRegions
from streams.payload.shm.region import NotHere
from streams.payload.shm.space import SEALED, Space
from streams.payload.tiers.counts import TierCounts

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
LONGEST_S = 80_000.0
"""Longest lifetime of a region, whatever the lease: a day would count as a clock error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Settings of regions: node, budget, lifetime."""

    node_id: str
    space: Space
    budget_bytes: int
    life_s: float
    """The lease of a frame plus a grace period."""
    sealed: bool = False
    """Whether to use a broker, if one answers."""


class SharedMemory:
    """A process's access to the regions of its node."""

    def __init__(self, terms: Terms, clock: Clock, counts: TierCounts) -> None:
        self._terms, self._clock, self._counts = terms, clock, counts
        self._files = FileRegions(terms.space, terms.budget_bytes, clock, counts)
        self._sealed = SealedRegions(terms.space, clock)

    def offer(self, ref: PayloadRef, data: bytes) -> IpcHint | None:
        """Share `data`, which is stored already; None: there is no room."""
        if ref.schema_digest is None:
            return None
        until = from_millis(
            millis(self._clock.now() + timedelta(seconds=min(self._terms.life_s, LONGEST_S)))
        )
        header = Header(len(data), bytes.fromhex(ref.sha256))
        try:
            name = self._shared(_stem(ref), header, data, until.timestamp())
        except OSError as error:
            self._counts.events["refused"] += 1
            _log.debug("%s is not shared: %s", ref.uri, error)
            return None
        if name is None:
            self._counts.events["exhausted"] += 1
            return None
        return IpcHint(self._terms.node_id, name, ref.schema_digest, until)

    def _shared(self, stem: str, header: Header, data: bytes, until: float) -> str | None:
        if self._terms.sealed and self._sealed.is_there:
            try:
                name = self._sealed.share(stem, header, data, until)
            except OSError as error:
                _log.debug("the broker rejected a region, which becomes a file: %s", error)
            else:
                self._counts.events["sealed"] += name is not None
                return name
        return self._files.share(stem, header, data, until)

    def attach(self, ref: PayloadRef) -> pa.Buffer:
        """Return the payload of `ref` without copying it.

        The region's own digest must be the reference's; the bytes are not hashed again.

        Raises:
            NotHere: the hint is not valid.
        """
        hint = ref.ipc
        if hint is None:
            return self._unhinted(ref)
        if hint.node_id != self._terms.node_id:
            raise NotHere("node")
        if hint.valid_until <= self._clock.now():
            raise NotHere("expired")
        if hint.schema_digest != ref.schema_digest:
            raise NotHere("schema")
        carrier = self._sealed if hint.shm_name.startswith(SEALED) else self._files
        return carrier.attach(hint.shm_name, _wanted(ref))

    def _unhinted(self, ref: PayloadRef) -> pa.Buffer:
        """Try the region's default name: most references lose their hint."""
        for carrier in (self._sealed, self._files) if self._terms.sealed else (self._files,):
            with suppress(NotHere):
                return carrier.attach(carrier.name_of(_stem(ref)), _wanted(ref))
        raise NotHere("no hint")

    def drop(self, ref: PayloadRef) -> None:
        """Remove the region of a payload that was deleted."""
        self._files.drop(_stem(ref))
        if self._terms.sealed:
            self._sealed.drop(_stem(ref))

    def tend(self) -> None:
        """Remove the expired regions of this process."""
        self._files.tend()

    def sweep(self) -> int:
        """Remove abandoned regions, such as after a crash; return how many."""
        return self._files.sweep()

    def close(self) -> None:
        """Remove the files of this process; readers keep their mappings."""
        self._files.close()
        self._sealed.close()

    @property
    def bytes_in_use(self) -> int:
        """Bytes of all regions of the node."""
        return self._files.bytes_in_use


def open_shared_memory(terms: Terms, clock: Clock, counts: TierCounts) -> SharedMemory | None:
    """Return the node's shared memory, swept; None if it is not available or has no budget."""
    if not terms.budget_bytes:
        return None
    folder = terms.space.folder
    if not os.access(folder, os.W_OK | os.X_OK):
        _log.warning("%s cannot be written: payloads are not shared in memory", folder)
        return None
    shared = SharedMemory(terms, clock, counts)
    shared.sweep()
    return shared


def _wanted(ref: PayloadRef) -> Header:
    try:
        return Header(ref.byte_length, bytes.fromhex(ref.sha256))
    except ValueError:
        raise NotHere("digest") from None


def _stem(ref: PayloadRef) -> str:
    """Return the region's name: equal bytes of an organization share a region."""
    return sha256(key_of(ref).encode()).hexdigest()[:40]
