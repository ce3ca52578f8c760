"""`streams replay diff`: where two executions, or two logs of one, differ first."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently

if TYPE_CHECKING:
    from streams.replay.log_diff import LogDiff
    from streams.replay.run_diff import RunDiff
    from streams.settings import Settings

_ID = click.IntRange(min=1)


@click.command()
@click.argument("a", metavar="A", type=_ID)
@click.argument("b", metavar="[B]", type=_ID, required=False)
@click.option(
    "--other-config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Compare with the log of this configuration file.",
)
@click.option("--other-dsn", metavar="DSN", help="Compare with the log in this database.")
@settings_options
def diff(
    a: int,
    b: int | None,
    other_config: Path | None,
    other_dsn: str | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Find where two executions differ first, or an execution in two logs.

    Two executions of one playbook are compared step by step, without ids, times, workers and
    interleaving; rows of loops as multisets. With one id and no other log, the stored chain is
    compared with the one computed again from the stored events: the first event that was
    changed outside of append is found. With another log, the chains of both are bisected.
    Exit code 0: equal, 1: different.

    \b
    Examples:
      streams replay diff 334285732872290304 334285732872294400
      streams replay diff 334285732872290304
      streams replay diff 334285732872290304 --other-config backup.yaml --json
    """
    if other_config is not None and other_dsn is not None:
        raise click.UsageError("give --other-config or --other-dsn, not both")
    settings = settings_of(file, data)
    if b is not None and b != a:
        if other_config is not None or other_dsn is not None:
            raise click.UsageError("give a second execution or another log, not both")
        _compare_runs(settings, a, b, as_json)
    if other_config is not None:
        other_dsn = settings_of(other_config, None).event_store.canonical_connection.dsn("read")
    found = asyncio.run(patiently(lambda: _of_logs(settings, a, other_dsn)))
    if as_json:
        from streams.replay.diff_json import log_diff_json

        print_json(log_diff_json(found))
    else:
        _print_logs(found)
    sys.exit(0 if found.is_equal else 1)


def _compare_runs(settings: Settings, a: int, b: int, as_json: bool) -> NoReturn:
    found = asyncio.run(patiently(lambda: _of_runs(settings, a, b)))
    if as_json:
        from streams.replay.diff_json import run_diff_json

        print_json(run_diff_json(found))
    else:
        _print_runs(found)
    sys.exit(0 if found.first_difference is None else 1)


async def _of_runs(settings: Settings, a: int, b: int) -> RunDiff:
    from streams.app import open_payloads, open_pool, open_registry, stored_log_of
    from streams.events.codec import Codec
    from streams.payload.port import Scope
    from streams.replay.run_diff import PayloadRows, RunComparison
    from streams.replay.verified import VerifiedLog

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    dsn = settings.event_store.canonical_connection.dsn("read")
    async with (
        open_registry(settings) as registry,
        open_pool(dsn) as pool,
        open_payloads(settings) as payloads,
    ):
        codec = await Codec.open(registry)
        log = stored_log_of(pool, codec, settings)
        events = VerifiedLog(log, codec)
        return await RunComparison(log, events, PayloadRows(payloads)).between(a, b, scope)


def _print_runs(found: RunDiff) -> None:
    click.echo(f"playbook      {found.path}")
    for one in found.steps:
        differs = one.differs_in
        click.echo(f"{one.name:<28} {'differs' if differs else 'equal':<8} {', '.join(differs)}")
    if (first := found.first_difference) is None:
        click.echo("equal")
        return
    click.echo(f"differs first {first.name}")
    for name in first.differs_in:
        click.echo(f"  {name:<12} a: {getattr(first.a, name, first.a is not None) or '-'}")
        click.echo(f"  {'':<12} b: {getattr(first.b, name, first.b is not None) or '-'}")


async def _of_logs(settings: Settings, execution_id: int, other_dsn: str | None) -> LogDiff:
    from streams.app import open_pool, open_registry, stored_log_of
    from streams.events.codec import Codec
    from streams.payload.port import Scope
    from streams.replay.log_diff import LogComparison, NamedLog
    from streams.replay.postgres import PostgresStoredLog

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    dsn = settings.event_store.canonical_connection.dsn("read")
    async with AsyncExitStack() as stack:
        registry = await stack.enter_async_context(open_registry(settings))
        codec = await Codec.open(registry)
        comparison = LogComparison(codec, scope)
        pool = await stack.enter_async_context(open_pool(dsn))
        mine = NamedLog("this log", stored_log_of(pool, codec, settings))
        if other_dsn is None:
            return await comparison.with_itself(mine, execution_id)
        pool = await stack.enter_async_context(open_pool(other_dsn))
        other = NamedLog("the other log", PostgresStoredLog(pool))
        return await comparison.between(mine, other, execution_id)


def _print_logs(found: LogDiff) -> None:
    click.echo(f"execution     {found.execution_id}")
    for name, log, events in zip("ab", (found.a, found.b), found.events, strict=True):
        click.echo(f"{name}             {log}: {events} events")
    click.echo(f"comparisons   {found.comparisons}")
    if found.is_equal:
        click.echo("equal")
        return
    click.echo(f"differs       first at event {found.seq}: {found.what}")
    for one in found.differences:
        click.echo(f"  {one.field:<20} a: {one.a or '-'}")
        click.echo(f"  {'':<20} b: {one.b or '-'}")
