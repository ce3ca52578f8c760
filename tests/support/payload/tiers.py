"""Tiers in a folder of the test's own, so that nothing is shared but what the test shares."""

from __future__ import annotations

from pathlib import Path

from streams.clock import Clock, SystemClock
from streams.events.model import Json
from streams.payload.arrow.rows import EncodedRows, encode_rows
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.payload.shm.node import SharedMemory, Terms
from streams.payload.shm.space import Space, space_in
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.disk import DiskCache
from streams.payload.tiers.process_cache import ByteLru
from streams.payload.tiers.tiered_store import Caches, TieredPayloads

ACME = Scope("acme", "care")
NODE = "node-1"
BUDGET = 1 << 20
LIFE_S = 90.0


def shared_memory(
    folder: Path,
    *,
    clock: Clock | None = None,
    counts: TierCounts | None = None,
    node_id: str = NODE,
    budget_bytes: int = BUDGET,
    sealed: bool = False,
) -> SharedMemory:
    """Return one process's way to the regions in `folder`."""
    folder.mkdir(exist_ok=True)
    terms = Terms(
        node_id=node_id,
        space=space(folder),
        budget_bytes=budget_bytes,
        life_s=LIFE_S,
        sealed=sealed,
    )
    return SharedMemory(terms, clock or SystemClock(), counts or TierCounts())


def space(folder: Path, store: str = "store") -> Space:
    """Return the space of those who use `store`."""
    return space_in(folder, store)


def node_caches(folder: Path, *, memory_bytes: int = 0, clock: Clock | None = None) -> Caches:
    """Return one process's caches on the node whose folder this is."""
    return caches_of(folder, TierCounts(), memory_bytes=memory_bytes, clock=clock)


def caches_of(
    folder: Path, counts: TierCounts, *, memory_bytes: int = 0, clock: Clock | None = None
) -> Caches:
    """Return caches that count what they do."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    return Caches(
        memory=ByteLru(memory_bytes) if memory_bytes else None,
        shared=shared_memory(folder / "shm", clock=clock, counts=counts),
        disk=DiskCache(disk, BUDGET, counts),
    )


class Process:
    """One process of a node: its own memory, the node's regions and disk, everybody's store."""

    def __init__(
        self,
        folder: Path,
        store: MemoryPayloadStore,
        *,
        memory_bytes: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self.counts = TierCounts("test")
        caches = caches_of(folder, self.counts, memory_bytes=memory_bytes, clock=clock)
        self.shared, self.disk = caches.shared, caches.disk
        self.payloads = TieredPayloads(store, caches, self.counts)

    def served_by(self) -> dict[str, int]:
        """Return how many reads each tier served."""
        served: dict[str, int] = {}
        for (tier, _), count in self.counts.reads.items():
            served[tier] = served.get(tier, 0) + count
        return served


def some_rows(count: int = 100) -> list[Json]:
    """Return rows of several kinds."""
    return [{"id": number, "name": f"n{number}", "tags": [number]} for number in range(count)]


def encoded(count: int = 100) -> EncodedRows:
    """Return such rows as Arrow."""
    return encode_rows(some_rows(count))
