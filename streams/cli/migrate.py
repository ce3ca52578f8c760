"""`streams migrate`: migrate the database up or down."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of


@click.command()
@settings_options
@click.option("--to", type=click.IntRange(min=0), help="Stop at this number; lower numbers undo.")
@click.option("--dry-run", is_flag=True, help="Print the steps; change nothing.")
@click.option("--yes", is_flag=True, help="Undo without asking; the log's events are lost.")
def migrate(
    file: Path | None, data: Path | None, to: int | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Migrate the database to the newest schema; idempotent, and safe to run concurrently.

    \b
    Examples:
      streams migrate
      streams migrate --dry-run --json
      streams migrate --to 4 --yes
    """
    from streams.log.migrate import migrate as run

    dsn = settings_of(file, data).event_store.canonical_connection.dsn("owner")
    if to is not None and not yes and not dry_run:
        planned = asyncio.run(run(dsn, to=to, dry_run=True))
        if any(step.startswith("down") for step in planned):
            click.confirm(f"This undoes: {', '.join(planned)}. Continue?", abort=True, err=True)
    done = asyncio.run(run(dsn, to=to, dry_run=dry_run))
    if as_json:
        print_json({"dry_run": dry_run, "steps": done})
    else:
        click.echo("\n".join(done) or "nothing to do: the database is up to date")
