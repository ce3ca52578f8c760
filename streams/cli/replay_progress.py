"""Progress of a long replay, on standard error."""

from __future__ import annotations

import click


class ReplayProgress:
    """Reports long replays, a line for each tenth."""

    _LEAST = 50_000

    def __init__(self) -> None:
        self._tenth = 0

    def __call__(self, done: int, of: int) -> None:
        tenth = 10 * done // of
        if of >= self._LEAST and tenth > self._tenth:
            self._tenth = tenth
            click.echo(f"{done} of {of} events", err=True)
