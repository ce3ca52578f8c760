"""The shared memory of a node: hints given and hints checked, whatever carries the bytes.

Where a broker answers, regions are sealed memory that it hands out; else they are files.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from streams.clock import Clock
from streams.envelope.canonical import from_millis, millis
from streams.envelope.model import IpcHint, PayloadRef
from streams.payload.content import key_of
from streams.payload.counts import TierCounts
from streams.payload.shm.files import FileRegions
from streams.payload.shm.header import Header
from streams.payload.shm.memfd import PREFIX, SealedRegions, broker_path
from streams.payload.shm.region import NotHere

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms regions are made: whose node, how much, how long."""

    node_id: str
    folder: Path
    budget_bytes: int
    life_s: float
    """The lease of a frame and the time of grace after it."""


class SharedMemory:
    """One process's way to the regions of its node."""

    def __init__(self, terms: Terms, clock: Clock, counts: TierCounts) -> None:
        self._terms, self._clock, self._counts = terms, clock, counts
        self._files = FileRegions(terms.folder, terms.budget_bytes, clock, counts)
        self._sealed = SealedRegions(broker_path(terms.folder), clock)

    def offer(self, ref: PayloadRef, data: bytes) -> IpcHint | None:
        """Share `data`, which is stored already; None: there is no room, and nobody minds."""
        if ref.schema_digest is None:
            return None
        until = from_millis(millis(self._clock.now() + timedelta(seconds=self._terms.life_s)))
        header = Header(len(data), bytes.fromhex(ref.sha256))
        carrier = self._sealed if self._sealed.is_there else self._files
        try:
            name = carrier.share(_stem(ref), header, data, until.timestamp())
        except OSError as error:
            self._counts.events["refused"] += 1
            _log.debug("%s is not shared: %s", ref.uri, error)
            return None
        if name is None:
            self._counts.events["exhausted"] += 1
            return None
        return IpcHint(self._terms.node_id, name, ref.schema_digest, until)

    def attach(self, ref: PayloadRef) -> pa.Buffer:
        """Return the payload of `ref` without copying it.

        The region's own digest must be the reference's; the bytes are not hashed again.

        Raises:
            NotHere: the hint does not hold.
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
        carrier = self._sealed if hint.shm_name.startswith(PREFIX) else self._files
        return carrier.attach(hint.shm_name, _wanted(ref))

    def _unhinted(self, ref: PayloadRef) -> pa.Buffer:
        """Look for the region under the name we would give it: most references lose their hint."""
        carrier = self._sealed if self._sealed.is_there else self._files
        try:
            return carrier.attach(carrier.name_of(_stem(ref)), _wanted(ref))
        except NotHere:
            raise NotHere("no hint") from None

    def drop(self, ref: PayloadRef) -> None:
        """Remove the region of a payload that was deleted."""
        self._files.drop(_stem(ref))
        self._sealed.drop(_stem(ref))

    def tend(self) -> None:
        """Remove the regions of this process that have had their time."""
        self._files.tend()

    def sweep(self) -> int:
        """Remove what nobody else will, such as what a crash left; return how many there were."""
        return self._files.sweep()

    def close(self) -> None:
        """Remove the files of this process; whoever reads one keeps what it has mapped."""
        self._files.close()
        self._sealed.close()

    @property
    def bytes_in_use(self) -> int:
        """What all processes of the node have in regions now."""
        return self._files.bytes_in_use + self._sealed.bytes_in_use


def open_shared_memory(terms: Terms, clock: Clock, counts: TierCounts) -> SharedMemory | None:
    """Return the node's shared memory, swept; None where there is none, or no budget for it."""
    if not terms.budget_bytes:
        return None
    if not os.access(terms.folder, os.W_OK | os.X_OK):
        _log.warning("%s cannot be written: payloads are not shared in memory", terms.folder)
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
    """Name a region by its payload's key: the same bytes of an organization, the same region."""
    return sha256(key_of(ref).encode()).hexdigest()[:40]
