"""Progress of rebuilds on standard error: done of total, rate, estimate of the remaining time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from streams.mirror.refill import Progress
    from streams.projector.business.shadow.build import ShadowProgress
    from streams.projector.rebuild import RebuildProgress
    from streams.roles.rebuild_parity import RebuildParity

EVERY_S = 1.0


class Estimate:
    """Lines about one part of a rebuild, at most one a second."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._began: tuple[float, int] | None = None
        self._printed_at = float("-inf")

    def line(self, done: int, total: int, unit: str) -> str | None:
        """Return the line to print, if it is time for one."""
        now = self._clock()
        if self._began is None:
            self._began = (now, done)
        if done < total and now - self._printed_at < EVERY_S:
            return None
        self._printed_at = now
        since, first = self._began
        rate = (done - first) / (now - since) if now > since else 0.0
        text = f"{self._name}: {done:,} of {total:,} {unit}"
        if not rate:
            return text
        return f"{text}, {rate:,.0f}/s, about {max(total - done, 0) / rate:,.0f} s left"

    def show(self, done: int, total: int, unit: str) -> None:
        """Print the line, if it is time for one."""
        if (text := self.line(done, total, unit)) is not None:
            click.echo(text, err=True)


def show_mirror() -> Callable[[Progress], None]:
    """Return what prints the progress of `rebuild kafka`."""
    estimate = Estimate("kafka")

    def show(one: Progress) -> None:
        if one.total_count:
            estimate.show(one.mirrored_count, one.total_count, "events")
        else:
            click.echo(f"kafka: {one.step}", err=True)

    return show


def show_tables() -> Callable[[object], None]:
    """Return what prints the progress of `rebuild tables`."""
    from streams.roles.table_rebuild import FillProgress

    estimate = Estimate("tables")

    def show(one: object) -> None:
        if isinstance(one, FillProgress):
            done, total = one.plans + one.partitions, one.open_executions + one.all_partitions
            estimate.show(done, total, "open executions and partitions")
        else:
            click.echo(f"tables: {one}", err=True)

    return show


def show_projections() -> Callable[[RebuildProgress], None]:
    """Return what prints the progress of `rebuild projections`."""
    estimate = Estimate("projections")
    return lambda one: estimate.show(one.events, one.total_events, "events")


def show_shadow() -> Callable[[ShadowProgress], None]:
    """Return what prints the progress of a build in the shadow."""
    estimate = Estimate("shadow")
    return lambda one: estimate.show(one.roots, one.total_roots, "roots of the log")


def show_parity() -> Callable[[RebuildParity], None]:
    """Return what prints the progress of the comparison after `rebuild projections`."""
    printed_at = time.monotonic()

    def show(one: RebuildParity) -> None:
        nonlocal printed_at
        if (now := time.monotonic()) - printed_at >= EVERY_S:
            printed_at = now
            click.echo(f"projections: {one.executions:,} executions compared", err=True)

    return show


def show_facts(total_events: int) -> Callable[[int], None]:
    """Return what prints the progress of `rebuild facts`."""
    estimate = Estimate("facts")
    return lambda events: estimate.show(events, total_events, "events")
