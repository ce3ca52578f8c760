"""Counters of the payload tiers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict

Tier = Literal["1", "1.5", "2", "3"]


class TierReads(TypedDict):
    """Reads a tier served, of own and others' payloads."""

    tier: Tier
    own: bool
    count: int


class TierSnapshot(TypedDict):
    """The counts as JSON; the owner of the tiers adds their sizes."""

    consumer: str
    reads: list[TierReads]
    read_bytes: dict[Tier, int]
    fell_through: dict[str, int]
    events: dict[str, int]
    bytes_in_use: NotRequired[dict[str, int]]
    regions: NotRequired[int]


@dataclass(slots=True)
class TierCounts:
    """The counters of one process. `consumer` is the name of its role."""

    consumer: str = "process"
    reads: Counter[tuple[Tier, bool]] = field(default_factory=Counter)
    """Reads by the tier that served them; True: of own payloads."""
    read_bytes: Counter[Tier] = field(default_factory=Counter)
    fell_through: Counter[str] = field(default_factory=Counter)
    """Reasons for misses of a tier."""
    events: Counter[str] = field(default_factory=Counter)
    """Regions written, shared, refused for lack of budget, swept; files evicted."""

    def read(self, tier: Tier, size: int, *, own: bool) -> None:
        """Count a read that `tier` served."""
        self.reads[tier, own] += 1
        self.read_bytes[tier] += size

    def snapshot(self) -> TierSnapshot:
        """Return everything as JSON."""
        return {
            "consumer": self.consumer,
            "reads": [
                {"tier": tier, "own": own, "count": count}
                for (tier, own), count in sorted(self.reads.items())
            ],
            "read_bytes": dict(self.read_bytes),
            "fell_through": dict(self.fell_through),
            "events": dict(self.events),
        }
