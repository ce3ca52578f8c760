"""`streams execution cancel|suspend|resume`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import options, settings_options
from streams.cli.output import settings_of
from streams.cli.patience import patiently

if TYPE_CHECKING:
    from streams.api.port import Head
    from streams.api.suspension import Next
    from streams.app import Log
    from streams.events.model import Event, NewEvent, Root
    from streams.settings import Settings

_steering_options = options(
    click.argument("execution_id", metavar="ID", type=click.IntRange(min=1)),
    click.option("--by", default="cli", show_default=True, help="Recorded requester."),
    click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing."),
    settings_options,
)


@click.command()
@_steering_options
@click.option("--reason", help="Recorded reason.")
def cancel(
    execution_id: int,
    by: str,
    reason: str | None,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Cancel an execution; exit 3 when it has already ended.

    \b
    Example:
      streams execution cancel 334285732872290304 --reason "wrong day"
    """
    output = asyncio.run(_cancel(settings_of(file, data), execution_id, by, reason, dry_run))
    _print(output, as_json, f"{execution_id} {'would be cancelled' if dry_run else 'is cancelled'}")


@click.command()
@_steering_options
@click.option("--reason", required=True, help="Reason, shown until it is resumed.")
def suspend(
    execution_id: int,
    by: str,
    reason: str,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Suspend dispatching of an execution; running frames and commands may still commit.

    Exits with 3 when it is already suspended, or has ended.

    \b
    Example:
      streams execution suspend 334285732872290304 --reason "the clinic's API is down"
    """

    def next_of(own: Sequence[Event]) -> NewEvent:
        from streams.clock import SystemClock
        from streams.execution.suspension import suspended

        return suspended(own, by=by, reason=reason, now=SystemClock().now())

    settings = settings_of(file, data)
    output = asyncio.run(_steer(settings, execution_id, "suspended", next_of, dry_run))
    _print(output, as_json, f"{execution_id} {'would be suspended' if dry_run else 'is suspended'}")


@click.command()
@_steering_options
def resume(
    execution_id: int,
    by: str,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Resume a suspended execution from its log; exit 3 when it is not suspended.

    \b
    Example:
      streams execution resume 334285732872290304
    """

    def next_of(own: Sequence[Event]) -> NewEvent:
        from streams.clock import SystemClock
        from streams.execution.suspension import resumed

        return resumed(own, by=by, now=SystemClock().now())

    settings = settings_of(file, data)
    output = asyncio.run(_steer(settings, execution_id, "resumed", next_of, dry_run))
    _print(output, as_json, f"{execution_id} {'would be resumed' if dry_run else 'is resumed'}")


async def _cancel(
    settings: Settings, execution_id: int, by: str, reason: str | None, dry_run: bool
) -> dict[str, object]:
    from streams.api.suspension import event_id_at
    from streams.clock import SystemClock
    from streams.execution.cancellation import cancelled

    output = {"execution_id": str(execution_id), "dry_run": dry_run}
    async with _opened(settings, execution_id, "execution.cancelled") as (log, root, head):
        if dry_run:
            return output
        now, key = SystemClock().now(), str(log.ids.next())
        cause_id = await event_id_at(log.store, root, head.seq)
        event = cancelled(
            root, head.scope, by=by, reason=reason, now=now, key=key, cause_id=cause_id
        )
        receipt = await log.store.append([event])
    return {**output, "status": "CANCELLED", "seq": receipt.events[0].seq}


async def _steer(
    settings: Settings, execution_id: int, what: str, next_of: Next, dry_run: bool
) -> dict[str, object]:
    from streams.api.suspension import steer
    from streams.execution.suspension import own_stream

    output = {"execution_id": str(execution_id), "dry_run": dry_run}
    async with _opened(settings, execution_id, f"execution.{what}") as (log, root, _):
        if dry_run:
            next_of([event async for event in log.store.read_stream(root, own_stream(root))])
            return output
        seq = await patiently(lambda: steer(log.store, root, next_of))
    return {**output, "status": "SUSPENDED" if what == "suspended" else "RUNNING", "seq": seq}


@asynccontextmanager
async def _opened(
    settings: Settings, execution_id: int, type: str
) -> AsyncIterator[tuple[Log, Root, Head]]:
    """Open the log for an execution that exists and has not ended."""
    from streams.api.errors import NotFound
    from streams.api.postgres import PostgresProjectionReader
    from streams.app import open_log, open_pool
    from streams.events.model import Root
    from streams.log.errors import RootEnded

    root = Root("execution", execution_id)
    dsn = settings.event_store.canonical_connection.dsn("read")

    async def read() -> Head | None:
        async with open_pool(dsn) as pool:
            return await PostgresProjectionReader(pool).head(root)

    head = await patiently(read)
    if head is None:
        raise NotFound("execution", execution_id)
    if head.has_ended:
        raise RootEnded(root, type)
    async with open_log(settings, role="cli", lanes=1) as log:
        yield log, root, head


def _print(output: dict[str, object], as_json: bool, text: str) -> None:
    click.echo(orjson.dumps(output).decode() if as_json else text)
