"""`streams rebuild`: create derived state again from the log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of


@click.group()
def rebuild() -> None:
    """Create derived state again from the log.

    \b
    Example:
      streams rebuild tables --yes
    """


@rebuild.command()
@settings_options
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def tables(file: Path | None, data: Path | None, as_json: bool, dry_run: bool, yes: bool) -> None:
    """Recreate the changelogs of planner and projector, and fill their tables from the log.

    Executions continue. Running processes notice the new changelogs within about 10 s; others
    fill their tables when they start. If it is interrupted, run it again.

    \b
    Examples:
      streams rebuild tables --dry-run
      streams rebuild tables --yes --json
    """
    from streams.roles.table_rebuild import CHANGELOGS, rebuild_tables

    settings = settings_of(file, data)
    if dry_run:
        if as_json:
            print_json({"dry_run": True, "changelogs": CHANGELOGS})
        else:
            click.echo(f"would delete and create {', '.join(CHANGELOGS)}")
        return
    if not yes:
        click.confirm(f"Delete {len(CHANGELOGS)} changelogs?", abort=True, err=True)
    done = asyncio.run(rebuild_tables(settings, lambda line: click.echo(line, err=True)))
    if as_json:
        print_json(
            {
                "open_executions": done.progress.open_executions,
                "served_partitions": done.progress.partitions,
                "seconds": round(done.seconds, 3),
            }
        )
    else:
        click.echo(f"{done.progress}, in {done.seconds:.1f} s")
