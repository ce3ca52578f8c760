"""Measures claims and writes the results to a page."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import psutil

Figures = Mapping[str, float]
Measure = Callable[[], Figures]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least or greatest value that a figure may have."""

    figure: str
    limit: float
    at_most: bool = False

    def holds(self, figures: Figures) -> bool:
        value = figures.get(self.figure)
        if value is None:
            return False
        return value <= self.limit if self.at_most else value >= self.limit

    def __str__(self) -> str:
        return f"`{self.figure}` at {'most' if self.at_most else 'least'} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class MeasuredClaim:
    """A claim about this program, how it is measured, and its thresholds."""

    name: str
    how: str
    measure: Measure
    thresholds: tuple[Threshold, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """The measurement of a claim."""

    claim: MeasuredClaim
    figures: Figures = field(default_factory=dict)
    failure: str | None = None

    @property
    def holds(self) -> bool:
        return self.failure is None and all(
            threshold.holds(self.figures) for threshold in self.claim.thresholds
        )


def prove(wanted: Iterable[MeasuredClaim], say: Callable[[str], None]) -> Iterator[Proof]:
    """Measure each claim; one that cannot be measured does not hold."""
    for claim in wanted:
        say(f"{claim.name} …")
        try:
            proof = Proof(claim, claim.measure())
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            proof = Proof(claim, failure=str(error))
        say(f"  {'holds' if proof.holds else 'DOES NOT HOLD'}: {proof.failure or proof.figures}")
        yield proof


def page(proofs: Iterable[Proof], *, at: datetime) -> str:
    """Return docs/benchmarks.md."""
    return "\n".join(_page(proofs, at)) + "\n"


def _page(proofs: Iterable[Proof], at: datetime) -> Iterator[str]:
    memory = psutil.virtual_memory().total / 2**30
    yield "# Benchmarks\n"
    yield "Written by `make prove`, which measures every claim anew. Figures of one machine are"
    yield "worth little beside another's, so each stands beside a limit measured in the same run.\n"
    yield f"Measured {at:%Y-%m-%d} on {os.cpu_count()} cores and {memory:.0f} GiB of memory,"
    yield f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, with the"
    yield "embedded stack on the same machine as the bench. What single runs showed beside this is"
    yield "in [benchmark-notes.md](benchmark-notes.md).\n"
    for proof in proofs:
        yield f"## {proof.claim.name}\n"
        yield f"{proof.claim.how}.\n"
        if proof.failure is not None:
            yield f"Not measured: {proof.failure}\n"
            continue
        yield "| figure | value |"
        yield "|---|---:|"
        for name, value in proof.figures.items():
            yield f"| `{name}` | {value:,} |"
        yield ""
        for threshold in proof.claim.thresholds:
            outcome = "holds" if threshold.holds(proof.figures) else "**does not hold**"
            yield f"- {threshold}: {outcome}"
        yield ""
