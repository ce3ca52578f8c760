"""Benchmark of tier 1.5 against tier 3: one batch, written here and read by another process.

A read goes from the reference to the extremes of every column, so that every value is
touched. Both tiers are read in turn, in the same process and over the same bytes; medians
are reported.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import median
from time import perf_counter
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from streams.app import open_payloads, open_tiers
from streams.dev.bench.report import BenchReport, Figure
from streams.events.model import PayloadRef
from streams.payload.arrow.rows import read_table
from streams.payload.port import ARROW, Scope
from streams.settings import Settings

COLUMNS = 8
ATTACHES = 2000
"""0.2 s: a shorter measurement is sensitive to bursts of other processes."""
Say = Callable[[str], None]
Extremes = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class IpcReadings:
    """Timings in seconds and results of the reading process."""

    attach_s: tuple[float, ...]
    tier15_s: tuple[float, ...]
    tier3_s: tuple[float, ...]
    seen: frozenset[Extremes]
    tiers: frozenset[str]
    """Tiers that served the reads expected from shared memory."""


async def bench_ipc(settings: Settings, *, megabytes: int, rounds: int, say: Say) -> BenchReport:
    """Write one batch and read it from both tiers in another process."""
    data, expected = batch(megabytes)
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_tiers(settings, consumer="bench") as payloads:
        ref = await payloads.put(
            scope, data, media_type=ARROW, schema_digest=f"bench-{uuid4().hex[:8]}"
        )
        try:
            say(f"stored {len(data):,} bytes")
            if ref.ipc is None:
                why = "the batch is not in shared memory: is there a budget for it, and room?"
                return BenchReport({"bytes": len(data)}, (why,))
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(other, read_both, settings, ref, rounds)
        finally:
            await payloads.delete(ref)
    return _report(found, len(data), expected)


def batch(megabytes: int) -> tuple[bytes, Extremes]:
    """Return a batch of random numbers as an Arrow stream, and its extremes."""
    count = megabytes * (1 << 20) // (4 * COLUMNS)
    columns = [
        pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(os.urandom(4 * count))])
        for _ in range(COLUMNS)
    ]
    table = pa.table(columns, names=[f"c{number}" for number in range(COLUMNS)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes(), extremes(table)


def extremes(table: pa.Table) -> Extremes:
    """Return the minimum and maximum of each column."""
    found = (pc.min_max(column).as_py() for column in table.columns)
    return tuple((one["min"], one["max"]) for one in found)


def read_both(settings: Settings, ref: PayloadRef, rounds: int) -> IpcReadings:
    """Read the batch from both tiers; runs in its own process."""
    return asyncio.run(_read_both(settings, ref, rounds))


async def _read_both(settings: Settings, ref: PayloadRef, rounds: int) -> IpcReadings:
    seen: set[Extremes] = set()
    async with (
        open_tiers(settings, consumer="bench") as tiers,
        open_payloads(settings) as durable,
    ):

        async def shared() -> None:
            seen.add(extremes(await tiers.table(ref)))

        async def stored() -> None:
            seen.add(extremes(read_table(await durable.get(ref))))

        async def attach() -> None:
            await tiers.table(ref)

        await attach()
        attached = [await _timed(attach) for _ in range(ATTACHES)]
        near, far = [], []
        for _ in range(rounds):
            near.append(await _timed(shared))
            far.append(await _timed(stored))
        served = {one["tier"] for one in tiers.snapshot()["reads"]}
    return IpcReadings(tuple(attached), tuple(near), tuple(far), frozenset(seen), frozenset(served))


async def _timed(call: Callable[[], Awaitable[None]]) -> float:
    began = perf_counter()
    await call()
    return perf_counter() - began


def _report(found: IpcReadings, size: int, expected: Extremes) -> BenchReport:
    near, far = median(found.tier15_s), median(found.tier3_s)
    figures: dict[str, Figure] = {
        "bytes": size,
        "attach_us": round(median(found.attach_s) * 1e6, 1),
        "read_gb_per_s": round(size / near / 1e9, 2),
        "tier15_read_ms": round(near * 1000, 2),
        "tier3_read_ms": round(far * 1000, 2),
        "ratio_tier15_to_tier3": round(far / near, 1),
    }
    faults = []
    if found.seen != {expected}:
        faults.append("the data read differs from the data written")
    if found.tiers != {"1.5"}:
        faults.append(f"reads of tier 1.5 were served by {', '.join(sorted(found.tiers))}")
    return BenchReport(figures, tuple(faults))
