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
from streams.cli.replay_business import show_business
from streams.cli.replay_diff import diff
from streams.cli.replay_output import (
    EventProgress,
    PastOrganization,
    print_organization,
    print_state,
    report_executions,
)
from streams.cli.replay_verify import verify

if TYPE_CHECKING:
    from streams.payload.port import Scope
    from streams.projector.rows import SnapshotRow
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


replay.add_command(verify)
replay.add_command(diff)


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
    command, result_ref, all, or business_object: the projections that its playbook declares.

    \b
    Examples:
      streams replay state 334285732872290304 --as-of-position 120
      streams replay state 334285732872290304 --as-of-offset noetl.events.execution:3:1200 --json
    """
    from streams.replay.state import BUSINESS, known_projection
    from streams.replay.state_json import state_json

    settings = settings_of(file, data)
    cutoff = _cutoff(as_of_event, as_of_position, as_of_time, as_of_offset)
    if projection == BUSINESS:
        show_business(settings, execution_id, cutoff, as_json=as_json)
        return
    known_projection(projection)
    found = asyncio.run(patiently(lambda: _state(settings, execution_id, cutoff)))
    if as_json:
        print_json(state_json(found, projection))
    else:
        print_state(found, projection)


@replay.command()
@click.argument("execution_id", metavar="ID", type=_ID)
@_cutoff_options
@settings_options
def snapshot(
    execution_id: int,
    as_of_event: int | None,
    as_of_position: int | None,
    as_of_time: str | None,
    as_of_offset: str | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Fold an execution from its first event and save a snapshot; later replays start there.

    The projector takes one every `event_store.replay.snapshot_interval_events` events.

    \b
    Example:
      streams replay snapshot 334285732872290304
    """
    settings = settings_of(file, data)
    cutoff = _cutoff(as_of_event, as_of_position, as_of_time, as_of_offset)
    row = asyncio.run(patiently(lambda: _snapshot(settings, execution_id, cutoff)))
    if as_json:
        print_json(
            {
                "execution_id": row.aggregate_id,
                "position": row.seq,
                "checksum": row.checksum,
                "code_digest": row.code_digest,
                "upcasters": row.upcaster_versions,
                "payload_root": row.payload_root,
                "encryption_context": row.encryption_context,
                "bytes": len(row.state),
            }
        )
    else:
        click.echo(f"snapshot      at event {row.seq}, {len(row.state)} bytes")
        click.echo(f"checksum      {row.checksum}")


@replay.command()
@click.option("--as-of-position", type=_ID, metavar="N", help="Up to this position of the log.")
@click.option("--as-of-time", metavar="TIME", help="Up to this time, in ISO 8601; UTC.")
@click.option("--list", "is_list", is_flag=True, help="Print every execution.")
@settings_options
def organization(
    as_of_position: int | None,
    as_of_time: str | None,
    is_list: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Show all executions of the organization as of one moment, with one checksum over them.

    Positions are those of the whole log (`log_position` of a state).

    \b
    Examples:
      streams replay organization --as-of-time 2026-11-18T12:00:00Z
      streams replay organization --as-of-position 120000 --list --json
    """
    settings = settings_of(file, data)
    cutoff = _cutoff(None, as_of_position, as_of_time, None)
    found = asyncio.run(patiently(lambda: _organization(settings, cutoff, is_list)))
    print_organization(found, as_json=as_json, is_list=is_list)


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
    async with _open_replay(settings) as opened:
        return await opened.state(
            execution_id, _scope(settings), cutoff, on_progress=EventProgress()
        )


async def _snapshot(settings: Settings, execution_id: int, cutoff: Cutoff) -> SnapshotRow:
    from streams.app import open_snapshot_store
    from streams.projector.rows import Changes

    async with _open_replay(settings) as opened, open_snapshot_store(settings) as store:
        row = await opened.snapshot(
            execution_id, _scope(settings), cutoff, on_progress=EventProgress()
        )
        changes = Changes()
        changes.add([row])
        await store.save(changes, ())
        return row


async def _organization(settings: Settings, cutoff: Cutoff, is_list: bool) -> PastOrganization:
    from streams.app import open_organization_replay
    from streams.replay.organization import OrganizationDigest

    async with open_organization_replay(settings) as opened:
        cut = await opened.cut(cutoff)
        found = PastOrganization(_scope(settings), cut, OrganizationDigest(), [])
        async for page in opened.pages(found.scope, cut, report_executions):
            found.digest.add(page.executions)
            if is_list:
                found.executions.extend(page.executions)
        return found


def _scope(settings: Settings) -> Scope:
    from streams.payload.port import Scope

    return Scope(settings.runtime.tenant_id, settings.runtime.organization_id)


@asynccontextmanager
async def _open_replay(settings: Settings) -> AsyncIterator[Replay]:
    from streams.app import open_replay

    async with open_replay(settings) as opened:
        yield opened
