"""Output of audits: a line for each check, and progress of long ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from streams.replay.checks import Check

_LONG = 50_000


def print_checks(checks: Iterable[Check]) -> None:
    """Print a line for each check, and the first difference of one that failed."""
    for one in checks:
        click.echo(f"{one.status.value:<15} {one.name:<13} {one.detail}")
        if one.first is not None:
            click.echo(f"{'':<15} {'':<13} first: {one.first}")


class EventProgress:
    """Reports long executions, a line for each tenth."""

    def __init__(self) -> None:
        self._reported = 0

    def __call__(self, done: int, of: int) -> None:
        """Report that `done` of `of` events were read."""
        tenth = 10 * done // of
        if of >= _LONG and tenth != self._reported:
            click.echo(f"{done} of {of} events", err=True)
        self._reported = tenth
