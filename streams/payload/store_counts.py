"""Counts of what a process writes to the payload store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streams.metrics.metric import Sample
from streams.metrics.tiers import TIER3_BYTES, TIER3_OBJECTS


@dataclass(slots=True)
class StoreCounts:
    """Objects written, and their bytes as packed."""

    objects: int = 0
    written_bytes: int = 0

    def add(self, size: int) -> None:
        """Count an object."""
        self.objects += 1
        self.written_bytes += size

    def samples(self) -> Iterator[Sample]:
        """Yield both."""
        yield Sample(TIER3_OBJECTS, self.objects)
        yield Sample(TIER3_BYTES, self.written_bytes)
