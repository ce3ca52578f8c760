"""Reads regions that are damaged at random; run as a process, so that a crash is seen.

`python -m tests.support.payload.damaged_regions SEED COUNT FOLDER` prints the outcome as JSON.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import orjson

from streams.dev.bench.payload_process import peak_bytes
from streams.events.model import PayloadRef
from streams.payload.arrow.rows import encode_rows, rows_of
from streams.payload.errors import PayloadCorrupt
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.tiered_store import Caches, TieredPayloads
from tests.support.payload.tiers import ACME, shared_memory

EDGES = (0, 1, -1, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63), 64, 65536)
ROWS: list[Any] = [
    {
        "id": n,
        "name": f"n{n}" * 3,
        "part": n / 3,
        "even": n % 2 == 0,
        "tags": [n],
        "sum": Decimal(f"{n}.5"),
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "day": date(2026, 1, 1),
        "maybe": None if n % 3 else "y",
    }
    for n in range(50)
]


def damaged(whole: bytes, random: Random) -> bytes:
    """Return a region with one to three things wrong in it, mostly in what it says of itself."""
    data = bytearray(whole)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(0, 1700 if random.random() < 0.6 else len(data) - 8)
        match random.randrange(5):
            case 0:
                data[place] ^= 1 << random.randrange(8)
            case 1:
                struct.pack_into("<q", data, place & ~7, random.choice(EDGES))
            case 2:
                edge = max(-(2**31), min(2**31 - 1, random.choice(EDGES)))
                struct.pack_into("<i", data, place & ~3, edge)
            case 3:
                data[place : place + 8] = random.randbytes(8)
            case _:
                if random.random() < 0.1:
                    return bytes(data[:place]) if place % 2 else bytes(data) + bytes(place)
                data[64 + place % 64] = random.randrange(256)
    return bytes(data)


async def read_damaged(seed: int, count: int, folder: Path) -> dict[str, Any]:
    """Read so many damaged regions, each as rows and as bytes, and say what came of it."""
    random, store = Random(seed), MemoryPayloadStore()
    writer, counts = TieredPayloads(store, _caches(folder), TierCounts()), TierCounts()
    reader = TieredPayloads(store, _caches(folder), counts)
    rows = encode_rows(ROWS)
    ref = await writer.put(
        ACME,
        rows.data,
        media_type=ARROW,
        row_count=rows.row_count,
        schema_digest=rows.schema_digest,
    )
    assert ref.ipc is not None
    region = folder / ref.ipc.shm_name[1:]
    whole, seen = region.read_bytes(), Counter[str]()
    for _ in range(count):
        region.write_bytes(damaged(whole, random))
        seen[await _read(reader, ref, rows.data)] += 1
        if random.random() < 0.2:  # also without its IPC hint
            seen[await _read(reader, replace(ref, ipc=None), rows.data)] += 1
    peak_mb = peak_bytes() >> 20
    return {"seen": seen, "fell_through": counts.fell_through, "peak_mb": peak_mb}


def _caches(folder: Path) -> Caches:
    return Caches(shared=shared_memory(folder))


async def _read(reader: TieredPayloads, ref: PayloadRef, right: bytes) -> str:
    if await reader.get(ref) != right:
        return "wrong bytes"
    table = await reader.table(ref)
    if table.num_rows != len(ROWS):
        return "wrong rows"
    try:
        rows_of(table)
    except PayloadCorrupt:
        return "refused"
    return "read"


if __name__ == "__main__":
    found = asyncio.run(read_damaged(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
    sys.stdout.write(orjson.dumps(found).decode())
