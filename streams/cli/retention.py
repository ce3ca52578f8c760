"""`streams retention`: policies, archives, and the run that archives ended executions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import COUNT, settings_options
from streams.cli.output import print_json, say, settings_of

if TYPE_CHECKING:
    from streams.retention.port import Archive, Policy
    from streams.retention.run import PartitionOutcome
    from streams.settings import Settings

_dry_run = click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")


@click.group()
def retention() -> None:
    """Archive ended executions to the payload store, by the policy of their tenant.

    \b
    Examples:
      streams retention policy set acme --keep-days 90
      streams retention run --dry-run
    """


@retention.group()
def policy() -> None:
    """List, set and remove policies; executions of a tenant without one stay in the log.

    \b
    Example:
      streams retention policy list
    """


@policy.command("list")
@settings_options
def list_policies(file: Path | None, data: Path | None, as_json: bool) -> None:
    """List policies.

    \b
    Example:
      streams retention policy list --json
    """
    found = asyncio.run(_policies(settings_of(file, data)))
    if as_json:
        print_json({"policies": [asdict(one) for one in found]})
        return
    for one in found:
        click.echo(f"{one.tenant_id:<24} keeps {one.keep_days} days after the last event")


@policy.command("set")
@click.argument("tenant_id", metavar="TENANT")
@click.option("--keep-days", type=click.IntRange(0, 36500), required=True)
@_dry_run
@settings_options
def set_policy(
    tenant_id: str,
    keep_days: int,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Let executions of a tenant be archived this many days after their last event.

    \b
    Example:
      streams retention policy set acme --keep-days 90
    """
    from streams.retention.port import Policy

    chosen = Policy(tenant_id, keep_days)
    if not dry_run:
        asyncio.run(_set_policy(settings_of(file, data), chosen))
    if as_json:
        print_json({"dry_run": dry_run, **asdict(chosen)})
    else:
        would = "would keep" if dry_run else "keeps"
        click.echo(f"{tenant_id} {would} {keep_days} days after the last event")


@policy.command("remove")
@click.argument("tenant_id", metavar="TENANT")
@_dry_run
@settings_options
def remove_policy(
    tenant_id: str, dry_run: bool, file: Path | None, data: Path | None, as_json: bool
) -> None:
    """Keep executions of a tenant in the log; what is archived stays archived.

    \b
    Example:
      streams retention policy remove acme --dry-run
    """
    if not dry_run:
        asyncio.run(_remove_policy(settings_of(file, data), tenant_id))
    if as_json:
        print_json({"dry_run": dry_run, "tenant_id": tenant_id})
    else:
        click.echo(f"{tenant_id} {'would keep' if dry_run else 'keeps'} all executions")


@retention.command("run")
@_dry_run
@settings_options
def run_command(dry_run: bool, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Archive what the policies allow, and detach the partitions of the log that it was in.

    Only partitions in which no execution begins any more are touched. Events are verified while
    they are written, and all objects are read again before a partition is detached. After an
    interruption, run it again: the same executions give the same objects.

    \b
    Examples:
      streams retention run --dry-run
      streams retention run --json
    """
    found = asyncio.run(_run(settings_of(file, data), dry_run))
    if as_json:
        print_json({"dry_run": dry_run, "partitions": [_outcome_json(one) for one in found]})
        return
    for one in found:
        _print_outcome(one, dry_run)
    if not any(one.executions for one in found):
        click.echo("nothing to archive")


@retention.command("list")
@settings_options
def list_archives(file: Path | None, data: Path | None, as_json: bool) -> None:
    """List archives, their manifests, and the detached tables that were not dropped.

    \b
    Example:
      streams retention list --json
    """
    found = asyncio.run(_archives(settings_of(file, data)))
    if as_json:
        print_json({"archives": [asdict(one) for one in found]})
        return
    for one in found:
        table = "dropped" if one.dropped_at else f"noetl_detached.{one.detached_table}"
        scope = f"{one.scope.tenant_id}/{one.scope.organization_id}"
        click.echo(
            f"{one.archive_id:<6} {one.partition:<14} {scope:<24} {one.executions} executions, "
            f"{one.events} events, {one.byte_length} bytes, {table}"
        )
        click.echo(f"       {one.manifest.uri}")


@retention.command("drop")
@click.argument("archive_id", metavar="ARCHIVE", type=COUNT)
@_dry_run
@settings_options
def drop_command(
    archive_id: int, dry_run: bool, file: Path | None, data: Path | None, as_json: bool
) -> None:
    """Drop the detached table of an archive, once its objects were read and verified again.

    \b
    Examples:
      streams retention drop 3 --dry-run
      streams retention drop 3 --json
    """
    found = asyncio.run(_drop(settings_of(file, data), archive_id, dry_run))
    if as_json:
        print_json({"dry_run": dry_run, "detached_table": found.detached_table})
    else:
        done = "would be dropped" if dry_run else "dropped"
        click.echo(f"noetl_detached.{found.detached_table} {done}")


def _outcome_json(one: PartitionOutcome) -> dict[str, object]:
    staying = [{**asdict(stay), "example": str(stay.example)} for stay in one.staying]
    return {**asdict(one), "staying": staying}


def _print_outcome(one: PartitionOutcome, dry_run: bool) -> None:
    would = "would be archived" if dry_run else "archived"
    size = "" if one.byte_length is None else f", {one.byte_length} bytes"
    click.echo(f"{one.partition}: {one.executions} executions, {one.events} events{size} {would}")
    for stay in one.staying:
        click.echo(f"  {stay.count} stay: {stay.reason}; for example {stay.example}")
    if one.detached_table is not None:
        numbers = ", ".join(map(str, one.archives))
        click.echo(f"  archive {numbers}; detached as noetl_detached.{one.detached_table}")


async def _policies(settings: Settings) -> Sequence[Policy]:
    from streams.app import open_policies

    async with open_policies(settings) as log:
        return await log.policies()


async def _set_policy(settings: Settings, chosen: Policy) -> None:
    from streams.app import open_policies

    async with open_policies(settings) as log:
        await log.set_policy(chosen)


async def _remove_policy(settings: Settings, tenant_id: str) -> None:
    from streams.app import open_policies

    async with open_policies(settings) as log:
        await log.remove_policy(tenant_id)


async def _archives(settings: Settings) -> Sequence[Archive]:
    from streams.app import open_policies

    async with open_policies(settings) as log:
        return await log.archives()


async def _run(settings: Settings, dry_run: bool) -> Sequence[PartitionOutcome]:
    from streams.app import open_policies, open_retention
    from streams.retention.run import plan, run

    if dry_run:
        async with open_policies(settings) as log:
            return await plan(log)
    async with open_retention(settings) as ports:
        return await run(ports, say)


async def _drop(settings: Settings, archive_id: int, dry_run: bool) -> Archive:
    from streams.app import open_retention
    from streams.retention.run import drop

    async with open_retention(settings) as ports:
        return await drop(ports, archive_id, dry_run=dry_run, report=say)
