"""Regions of shared memory that tests make and look for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streams.events.model import PayloadRef
from streams.payload.content import describe
from streams.payload.port import ARROW
from streams.payload.shm.node import SharedMemory
from streams.payload.shm.region import NotHere
from tests.support.payload.tiers import ACME, encoded

DATA = encoded().data
REF = describe(ACME, DATA, media_type=ARROW, schema_digest=encoded().schema_digest)


def shared(memory: SharedMemory, data: bytes = DATA) -> PayloadRef | None:
    """Offer data; return the reference with its hint, or None if it was not taken."""
    ref = describe(ACME, data, media_type=ARROW, schema_digest=REF.schema_digest)
    hint = memory.offer(ref, data)
    return None if hint is None else replace(ref, ipc=hint)


def regions(folder: Path) -> list[Path]:
    return sorted(folder.glob("noetl-*-*-*"))


def reason(memory: SharedMemory, ref: PayloadRef) -> str:
    with pytest.raises(NotHere) as caught:
        memory.attach(ref)
    return caught.value.reason
