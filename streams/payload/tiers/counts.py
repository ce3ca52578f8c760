"""What the tiers did, as plain counters that anybody may read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict

Tier = Literal["1", "1.5", "2", "3"]


class TierReads(TypedDict):
    """How many reads a tier served, of what this process wrote or others did."""

    tier: Tier
    own: bool
    count: int


class TierSnapshot(TypedDict):
    """The counts as JSON; whoever owns the tiers adds how much is in them."""

    consumer: str
    reads: list[TierReads]
    read_bytes: dict[Tier, int]
    fell_through: dict[str, int]
    events: dict[str, int]
    bytes_in_use: NotRequired[dict[str, int]]
    regions: NotRequired[int]


@dataclass(slots=True)
class TierCounts:
    """The counters of one process. `consumer` is who reads here: a role's name."""

    consumer: str = "process"
    reads: Counter[tuple[Tier, bool]] = field(default_factory=Counter)
    """Reads by the tier that served them; True: of what this process itself had written."""
    read_bytes: Counter[Tier] = field(default_factory=Counter)
    fell_through: Counter[str] = field(default_factory=Counter)
    """Why a tier that was asked did not answer."""
    events: Counter[str] = field(default_factory=Counter)
    """Regions written, shared, refused for want of budget, swept; files evicted."""

    def read(self, tier: Tier, size: int, *, own: bool) -> None:
        """Note a read that `tier` served."""
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
