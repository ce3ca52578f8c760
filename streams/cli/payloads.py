"""`streams payloads`: report on and collect the payload store."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of

if TYPE_CHECKING:
    from streams.collector.collect import CollectionReport
    from streams.collector.manual import Ended

INCONSISTENT = 5
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Duration(click.ParamType):
    """A duration such as 24h."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Parse a number and a unit."""
        found = re.fullmatch(r"(\d{1,6})([smhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration; write 90s, 30m, 24h or 7d", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.group()
def payloads() -> None:
    """Report on and collect the payload store.

    \b
    Example:
      streams payloads report
    """


@payloads.command("collect")
@settings_options
@click.option("--dry-run", is_flag=True, help="Report what would be done; change nothing.")
@click.option(
    "--grace",
    type=Duration(),
    default="24h",
    show_default=True,
    help="Minimum age of an unreferenced object before it is trashed, and again before deletion.",
)
@click.option(
    "--claim",
    is_flag=True,
    help="Claim unmarked objects for this log, though it references none of them.",
)
def collect_command(
    file: Path | None,
    data: Path | None,
    as_json: bool,
    dry_run: bool,
    grace: timedelta,
    claim: bool,
) -> None:
    """Expire results whose TTL or scope has ended; delete unreferenced objects.

    An object is moved to the trash first, where readers still find it, and deleted by a run
    after another grace. The role `collector` does this daily. Exits with 5 when a live payload
    is missing or damaged.

    \b
    Examples:
      streams payloads collect --dry-run
      streams payloads collect --grace 24h --json
    """
    _finish(asyncio.run(_collect(file, data, grace=grace, dry_run=dry_run, claim=claim)), as_json)


@payloads.command("expire")
@click.argument("ref", required=False)
@settings_options
@click.option("--execution", type=click.IntRange(min=1), help="All results of this execution.")
@click.option("--dry-run", is_flag=True, help="Report what would expire; change nothing.")
def expire_command(
    ref: str | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
    execution: int | None,
    dry_run: bool,
) -> None:
    """Expire a result by its name, or everything that an execution stored.

    It can then no longer be read by its name, and the next `collect` deletes payloads without
    other references. Results of running executions cannot be expired.

    \b
    Examples:
      streams payloads expire noetl://execution/7/step/load/task/page/9 --dry-run
      streams payloads expire --execution 7 --json
    """
    if (ref is None) == (execution is None):
        raise click.UsageError("give the name of a result, or --execution ID")
    ended = asyncio.run(_expire(file, data, ref, execution, dry_run=dry_run))
    if as_json:
        print_json(asdict(ended))
        return
    would = "would be " if dry_run else ""
    click.echo(f"{len(ended.results):,} results of execution {ended.execution_id} {would}expired")
    if not dry_run:
        click.echo(f"{ended.payloads:,} payloads have no other reference in it")


@payloads.command("report")
@settings_options
@click.option("--verify", is_flag=True, help="Read every live payload, also those read before.")
def report_command(file: Path | None, data: Path | None, as_json: bool, verify: bool) -> None:
    """Count objects, orphans, trash, and references whose object is missing.

    Each payload is read once for its references; later damage is found with --verify. Exits
    with 5 when a live payload is missing or damaged.

    \b
    Examples:
      streams payloads report
      streams payloads report --verify --json
    """
    _finish(asyncio.run(_collect(file, data, dry_run=True, verify=verify)), as_json)


async def _collect(file: Path | None, data: Path | None, **options: Any) -> CollectionReport:
    from streams.app import open_collector
    from streams.collector.collect import collect

    settings = settings_of(file, data)
    async with open_collector(settings) as ports:
        gc = settings.payload_store.gc
        return await collect(ports, retention=gc.retention, scope_grace=gc.scope_grace, **options)


async def _expire(
    file: Path | None, data: Path | None, ref: str | None, execution: int | None, *, dry_run: bool
) -> Ended:
    from streams.app import open_collector
    from streams.collector.manual import end_execution, end_result

    async with open_collector(settings_of(file, data)) as ports:
        if ref is not None:
            return await end_result(ports, ref, dry_run=dry_run)
        assert execution is not None
        return await end_execution(ports, execution, dry_run=dry_run)


def _finish(report: CollectionReport, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
    else:
        _print_report(report)
    if not report.is_whole:
        sys.exit(INCONSISTENT)


def _print_report(report: CollectionReport) -> None:
    would = "would be " if report.dry_run else ""
    click.echo(f"{report.objects:,} objects, {report.object_bytes:,} bytes; {report.live:,} live")
    for reason, count in report.expired.items():
        click.echo(f"  {count:,} results {would}expired ({reason})")
    click.echo(f"  {report.orphans:,} without a reference, {report.orphan_bytes:,} bytes")
    click.echo(f"    {report.young:,} of them within the grace")
    click.echo(f"    {report.trashed:,} {would}moved to the trash")
    click.echo(f"  {report.in_trash:,} in the trash")
    click.echo(f"  {report.restored:,} {would}restored from it")
    click.echo(f"  {report.purged:,} {would}deleted, {report.purged_bytes:,} bytes")
    if report.unknown:
        click.echo(f"  {report.unknown:,} other objects, ignored")
    for key in report.unreadable:
        click.echo(f"DAMAGED: {key}; restore it from a backup of the bucket")
    for key in report.dangling:
        click.echo(f"MISSING: {key}; restore it from a backup of the bucket")
    if report.dangling_count > len(report.dangling):
        click.echo(f"  and {report.dangling_count - len(report.dangling):,} more are missing")
