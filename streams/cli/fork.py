"""`streams execution fork`: a new execution from a past state of another one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently
from streams.cli.workload import set_json_option, set_option, workload_of

if TYPE_CHECKING:
    from streams.events.model import Json
    from streams.replay.fork.effects import RepeatedEffect
    from streams.replay.fork.forks import PreparedFork
    from streams.settings import Settings


@click.command()
@click.argument("execution_id", metavar="ID", type=click.IntRange(min=1))
@click.option(
    "--at", "position", type=int, required=True, metavar="POSITION", help="After its Nth event."
)
@set_option
@set_json_option
@click.option("--by", default="cli", show_default=True, help="Recorded requester.")
@click.option("--yes", is_flag=True, help="Repeat side effects without asking.")
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
@settings_options
def fork(
    execution_id: int,
    position: int,
    texts: tuple[str, ...],
    values: tuple[str, ...],
    by: str,
    yes: bool,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Start a new execution from a past state of an execution, which stays unchanged.

    Steps that were open, or the one that failed, run again from their beginning. --set changes
    the workload (a dotted path may lead into it), or with ctx.NAME a value of ctx. Side effects
    that the source has begun and the fork would repeat are listed first.

    \b
    Examples:
      streams execution fork 334285732872290304 --at 41 --dry-run
      streams execution fork 334285732872290304 --at 41 --set region=eu --yes
    """
    settings = settings_of(file, data)
    given = workload_of(texts, values)
    if dry_run or not yes:
        found = asyncio.run(patiently(lambda: _prepared(settings, execution_id, position, given)))
        if dry_run:
            _print(found, None, as_json)
            return
        _confirm(found)
    asyncio.run(_start(settings, execution_id, position, given, by, as_json))


def _confirm(found: PreparedFork) -> None:
    for effect in found.effects:
        click.echo(_line(effect), err=True)
    if found.effects:
        click.confirm("Repeat these side effects?", abort=True, err=True)


async def _prepared(
    settings: Settings, execution_id: int, position: int, values: Mapping[str, Json]
) -> PreparedFork:
    from streams.app import catalog_of, forks_of, open_log, open_payloads
    from streams.payload.port import Scope

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_log(settings, role="cli", lanes=1) as log, open_payloads(settings) as payloads:
        forks = forks_of(log.pool, log.codec, catalog_of(log, payloads), payloads)
        return await forks.prepare(execution_id, scope, position, values)


async def _start(
    settings: Settings,
    execution_id: int,
    position: int,
    values: Mapping[str, Json],
    by: str,
    as_json: bool,
) -> None:
    from streams.app import catalog_of, forks_of, open_log, open_payloads
    from streams.payload.port import Scope

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_log(settings, role="cli", lanes=1) as log, open_payloads(settings) as payloads:
        forks = forks_of(log.pool, log.codec, catalog_of(log, payloads), payloads)
        found = await forks.prepare(execution_id, scope, position, values)
        new_id = log.ids.next()
        limit = settings.payload_store.threshold_bytes
        await patiently(
            lambda: forks.start(found, new_id, by=by, into=log.store, inline_bytes=limit)
        )
        _print(found, new_id, as_json)


def _print(found: PreparedFork, new_id: int | None, as_json: bool) -> None:
    from streams.replay.fork.fork_json import fork_json

    if as_json:
        print_json(fork_json(found, new_id))
        return
    point = found.state.point
    click.echo(f"{new_id or 'would be started'}")
    click.echo(f"source        {point.plan.execution_id} after event {point.position}")
    click.echo(f"checksum      {point.checksum}")
    for one in point.entered_again:
        click.echo(f"runs again    {one.step}")
    for effect in found.effects:
        click.echo(_line(effect))


def _line(effect: RepeatedEffect) -> str:
    done = f"{effect.commands} commands, {effect.frames} frames, {effect.rows} rows"
    return f"repeats       {effect.step}.{effect.task} ({effect.kind}): {done} begun before"
