"""A declared metric, and its values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of the processes of some roles."""

    name: str
    kind: Kind
    help: str
    roles: tuple[str, ...]
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets."""


@dataclass(slots=True)
class Distribution:
    """Observations counted by bucket; the last bucket has no upper bound."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a metric for these values of its labels."""

    metric: Metric
    value: float | Distribution
    labels: Sequence[str] = ()


Source: TypeAlias = Callable[[], Iterable[Sample]]
"""Returns current samples; called at each scrape."""
