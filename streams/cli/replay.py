"""`streams replay`: what was true at a moment, from the log and the payloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import options, settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently
from streams.cli.replay_diff import diff

if TYPE_CHECKING:
    from streams.replay.cutoff import Cutoff
    from streams.replay.state import Replay, ReplayedState
    from streams.settings import Settings

_ID = click.IntRange(min=1)
_cutoff_options = options(
    click.option("--as-of-event", type=_ID, metavar="ID", help="Up to this event."),
    click.option("--as-of-position", type=_ID, metavar="N", help="Up to its Nth event."),
    click.option("--as-of-time", metavar="TIME", help="Up to this time, in ISO 8601; UTC."),
    click.option(
        "--as-of-offset", metavar="TOPIC:PARTITION:OFFSET", help="Up to this record of its topic."
    ),
)


@click.group()
def replay() -> None:
    """Reproduce the state of executions at any moment, with a checksum.

    \b
    Example:
      streams replay state 334285732872290304 --as-of-time 2026-11-18T12:00:00Z
    """


@replay.command()
@click.argument("execution_id", metavar="ID", type=_ID)
@_cutoff_options
@click.option("--projection", default="all", show_default=True, help="Only this part.")
@settings_options
def state(
    execution_id: int,
    as_of_event: int | None,
    as_of_position: int | None,
    as_of_time: str | None,
    as_of_offset: str | None,
    projection: str,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Show an execution as it was at a moment; by default at its newest event.

    Every event is verified before it is folded. A projection is execution, loop, stage, frame,
    command, result_ref or all.

    \b
    Examples:
      streams replay state 334285732872290304 --as-of-position 120
      streams replay state 334285732872290304 --as-of-offset noetl.events.execution:3:1200 --json
    """
    from streams.replay.state import known_projection
    from streams.replay.state_json import state_json

    known_projection(projection)
    settings = settings_of(file, data)
    cutoff = _cutoff(as_of_event, as_of_position, as_of_time, as_of_offset)
    found = asyncio.run(patiently(lambda: _state(settings, execution_id, cutoff)))
    if as_json:
        print_json(state_json(found, projection))
    else:
        _print_state(found, projection)


def _cutoff(
    event_id: int | None, position: int | None, time: str | None, offset: str | None
) -> Cutoff:
    from streams.replay.cutoff import Cutoff, KafkaOffset, time_of

    return Cutoff(
        event_id=event_id,
        seq=position,
        time=None if time is None else time_of(time),
        offset=None if offset is None else KafkaOffset.parse(offset),
    )


async def _state(settings: Settings, execution_id: int, cutoff: Cutoff) -> ReplayedState:
    from streams.payload.port import Scope

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with _open_replay(settings) as opened:
        return await opened.state(execution_id, scope, cutoff, on_progress=_Progress())


@asynccontextmanager
async def _open_replay(settings: Settings) -> AsyncIterator[Replay]:
    from streams.app import open_replay

    async with open_replay(settings) as opened:
        yield opened


class _Progress:
    """Reports long replays, a line for each tenth."""

    _LEAST = 50_000

    def __init__(self) -> None:
        self._tenth = 0

    def __call__(self, done: int, of: int) -> None:
        tenth = 10 * done // of
        if of >= self._LEAST and tenth > self._tenth:
            self._tenth = tenth
            click.echo(f"{done} of {of} events", err=True)


def _print_state(found: ReplayedState, projection: str) -> None:
    at, row = found.as_of, found.execution
    click.echo(f"execution     {found.execution_id}  {row.path}  {row.status}")
    click.echo(f"as of         event {at.seq}, {at.event_type}, {at.time.isoformat()}")
    for one in found.rows_of(projection):
        name = type(one).__name__.removesuffix("Row").lower()
        step = getattr(one, "step_name", "")
        status = getattr(one, "status", "")
        click.echo(f"open          {name:<8} {one.key[0]}  {step}  {status}")
    for kind, chain in found.ended._asdict().items():
        if chain.length:
            click.echo(f"ended         {kind:<10} {chain.length}")
    if found.snapshot is not None:
        why = f" ignored: {found.snapshot.ignored}" if found.snapshot.ignored else ""
        click.echo(f"snapshot      at event {found.snapshot.seq}{why}")
    click.echo(f"events read   {found.events_read}, each verified")
    click.echo(f"checksum      {found.checksum_of(projection)}")


replay.add_command(diff)
