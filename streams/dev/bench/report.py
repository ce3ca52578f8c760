"""The report of a bench: figures and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

Figure = float | int | str | Mapping[str, float]
"""A number, a text, or figures by process or hop."""


@dataclass(frozen=True, slots=True)
class BenchReport:
    """Figures by name, and faults; a bench with faults exits non-zero."""

    figures: Mapping[str, Figure]
    faults: tuple[str, ...] = field(default=())


def middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure over the rounds."""
    return {name: median(found[name] for found in rounds) for name in rounds[0]}


def per_second(count: int, seconds: float) -> float:
    """Return a rate, rounded to significant digits."""
    return round(count / seconds, 1)


def percentile(ordered: list[float], percent: int) -> float:
    """Return the value below which `percent` of the ordered values lie."""
    if not ordered:
        return 0.0
    return round(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)], 1)
