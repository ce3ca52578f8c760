"""Output of audits: a line for each check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from streams.replay.checks import Check


def print_checks(checks: Iterable[Check]) -> None:
    """Print a line for each check, and the first difference of one that failed."""
    for one in checks:
        click.echo(f"{one.status.value:<15} {one.name:<13} {one.detail}")
        if one.first is not None:
            click.echo(f"{'':<15} {'':<13} first: {one.first}")
