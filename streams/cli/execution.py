"""`streams execution`: show executions, and suspend, resume, cancel or fork them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.fork import fork
from streams.cli.options import COUNT, settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently
from streams.cli.steering import cancel, resume, suspend

if TYPE_CHECKING:
    from streams.api.event_json import RowJson
    from streams.api.port import Row
    from streams.settings import Settings

_ID = click.IntRange(min=1)


@click.group()
def execution() -> None:
    """List, show, suspend, resume, cancel and fork executions, and print their events.

    \b
    Example:
      streams execution list --status RUNNING
    """


@execution.command("list")
@click.option("--status", help="Only this status, for example RUNNING or FAILED.")
@click.option("--path", help="Only executions of this playbook.")
@click.option("--before", type=_ID, help="Only with a lower id.")
@click.option("--limit", type=COUNT, default=20, show_default=True)
@settings_options
def list_command(
    status: str | None,
    path: str | None,
    before: int | None,
    limit: int,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """List executions, the newest first.

    \b
    Examples:
      streams execution list --limit 5
      streams execution list --path examples/pft --json
    """
    settings = settings_of(file, data)
    rows = asyncio.run(patiently(lambda: _list(settings, status, path, before, limit)))
    if as_json:
        print_json({"executions": rows})
        return
    for row in rows:
        took = _seconds(row["start_time"], row["end_time"])
        why = f"  ({row['error']})" if row["status"] == "SUSPENDED" else ""
        click.echo(f"{row['execution_id']:<20} {row['status']:<10} {took:>9}  {row['path']}{why}")


@execution.command()
@click.argument("execution_id", metavar="ID", type=_ID)
@settings_options
def show(execution_id: int, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Show an execution, its stages and open commands.

    \b
    Example:
      streams execution show 334285732872290304
    """
    settings = settings_of(file, data)
    row = asyncio.run(patiently(lambda: _show(settings, execution_id)))
    if as_json:
        print_json(row)
        return
    for name in ("execution_id", "path", "version", "status", "start_time", "end_time", "error"):
        if row.get(name) is not None:
            click.echo(f"{name.replace('_', ' '):<13} {row[name]}")
    for stage in row["stages"]:
        rows = f"{stage['rows_done']} rows" + (
            f", {stage['rows_failed']} failed" if stage["rows_failed"] else ""
        )
        frames = f"{stage['frames_done']} of {stage['frames']} frames"
        click.echo(f"stage         {stage['step_name']:<24} {stage['status']:<9} {frames}, {rows}")
    for command in row["commands"]:
        click.echo(f"command       {command['step_name']:<24} {command['status']}")


@execution.command()
@click.argument("execution_id", metavar="ID", type=_ID)
@click.option("--after", default=0, show_default=True, type=click.IntRange(min=0))
@click.option("--limit", type=COUNT, default=200, show_default=True)
@settings_options
def events(
    execution_id: int,
    after: int,
    limit: int,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Print the events of an execution, in order, from the log or its archive.

    \b
    Example:
      streams execution events 334285732872290304 --after 100
    """
    settings = settings_of(file, data)
    output = asyncio.run(patiently(lambda: _events(settings, execution_id, after, limit)))
    if as_json:
        print_json({"events": output})
        return
    for one in output:
        what = one.get("error") or one.get("status") or ""
        node = one.get("node_name", "")
        click.echo(
            f"{one['seq']:>6} {one['ingest_time']} {one['event_type']:<22} {node:<20} {what}"
        )


for steering in (cancel, suspend, resume, fork):
    execution.add_command(steering)


async def _list(
    settings: Settings, status: str | None, path: str | None, before: int | None, limit: int
) -> list[RowJson]:
    from streams.api.postgres import PostgresProjectionReader
    from streams.api.serializers import row_json
    from streams.app import open_pool
    from streams.payload.port import Scope

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_pool(settings.event_store.canonical_connection.dsn("read")) as pool:
        rows = await PostgresProjectionReader(pool).executions(
            scope, status=status, path=path, before=before or 2**63 - 1, limit=limit
        )
    return [row_json(row) for row in rows]


async def _show(settings: Settings, execution_id: int) -> RowJson:
    from streams.api.errors import NotFound
    from streams.api.postgres import PostgresProjectionReader
    from streams.api.serializers import row_json
    from streams.app import open_pool

    async with open_pool(settings.event_store.canonical_connection.dsn("read")) as pool:
        projections = PostgresProjectionReader(pool)
        row = await projections.execution(execution_id)
        if row is None:
            raise NotFound("execution", execution_id, "it may not be projected yet")
        parts = await projections.parts(execution_id)
    return {**row_json(row), **{name: _rows_json(rows) for name, rows in parts.items()}}


def _rows_json(rows: Sequence[Row]) -> list[RowJson]:
    from streams.api.serializers import row_json

    return [row_json(row) for row in rows]


async def _events(settings: Settings, execution_id: int, after: int, limit: int) -> list[RowJson]:
    from streams.api.event_json import event_json
    from streams.app import event_store_of, open_pool, open_registry
    from streams.events.codec import Codec
    from streams.events.model import Root
    from streams.log.postgres import PostgresEventStore

    dsn = settings.event_store.canonical_connection.dsn("read")
    async with open_registry(settings) as registry, open_pool(dsn) as pool:
        codec = await Codec.open(registry)
        log = event_store_of(PostgresEventStore(None, pool, codec), pool, codec, settings)
        root = Root("execution", execution_id)
        found = log.read_root(root, after_seq=after, through_seq=after + limit)
        return [event_json(event) async for event in found]


def _seconds(start: datetime | None, end: datetime | None) -> str:
    return f"{(end - start).total_seconds():.1f} s" if start and end else ""
