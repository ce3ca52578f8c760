"""`streams rebuild`: create derived state again from the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.rebuild_parts import FAILURES, PLANS, REBUILDS, Part

if TYPE_CHECKING:
    from streams.settings import Settings

Command = Callable[..., None]


def _rebuild_options(command: Command) -> Command:
    dry_run = click.option(
        "--dry-run", is_flag=True, help="Print what would be done; change nothing."
    )
    yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
    return settings_options(dry_run(yes(command)))


@click.group()
def rebuild() -> None:
    """Create derived state again from the log.

    Executions continue meanwhile. If it is interrupted, run it again.

    \b
    Examples:
      streams rebuild all --dry-run
      streams rebuild tables --yes
    """


@rebuild.command()
@_rebuild_options
def kafka(file: Path | None, data: Path | None, as_json: bool, dry_run: bool, yes: bool) -> None:
    """Recreate the event topics and refill them from the log, as `streams mirror rebuild`.

    \b
    Example:
      streams rebuild kafka --yes --json
    """
    _run(settings_of(file, data), ["kafka"], as_json=as_json, dry_run=dry_run, yes=yes)


@rebuild.command()
@_rebuild_options
def tables(file: Path | None, data: Path | None, as_json: bool, dry_run: bool, yes: bool) -> None:
    """Recreate the changelogs of planner and projector, and fill their tables from the log.

    Running processes notice the new changelogs within about 10 s; others fill their tables when
    they start.

    \b
    Examples:
      streams rebuild tables --dry-run
      streams rebuild tables --yes --json
    """
    _run(settings_of(file, data), ["tables"], as_json=as_json, dry_run=dry_run, yes=yes)


@rebuild.command()
@click.option("--execution", "execution_id", type=int, help="Only the rows of this execution.")
@_rebuild_options
def projections(
    file: Path | None,
    data: Path | None,
    as_json: bool,
    dry_run: bool,
    yes: bool,
    execution_id: int | None,
) -> None:
    """Delete the projected rows and fold them again from the log, execution by execution.

    Each execution is replaced in one transaction; the projector may go on. Afterwards the rows are
    compared with a replay of verified events, unless event_store.replay.require_projection_parity
    is off. Exit code 1 if they differ.

    \b
    Examples:
      streams rebuild projections --yes
      streams rebuild projections --execution 7351 --yes --json
    """
    settings = settings_of(file, data)
    _run(settings, ["projections"], execution_id, as_json=as_json, dry_run=dry_run, yes=yes)


@rebuild.command()
@_rebuild_options
def facts(file: Path | None, data: Path | None, as_json: bool, dry_run: bool, yes: bool) -> None:
    """Publish the facts that are missing on their topics, or differ from the log, again.

    Facts that the log does not have are deleted. The facts role may go on.

    \b
    Examples:
      streams rebuild facts --dry-run
      streams rebuild facts --yes --json
    """
    _run(settings_of(file, data), ["facts"], as_json=as_json, dry_run=dry_run, yes=yes)


@rebuild.command("all")
@_rebuild_options
def all_parts(
    file: Path | None, data: Path | None, as_json: bool, dry_run: bool, yes: bool
) -> None:
    """Rebuild the event topics, then the tables, the projections and the facts.

    \b
    Examples:
      streams rebuild all --dry-run --json
      streams rebuild all --yes
    """
    parts = ["kafka", "tables", "projections", "facts"]
    _run(settings_of(file, data), parts, as_json=as_json, dry_run=dry_run, yes=yes)


def _run(
    settings: Settings,
    parts: list[str],
    execution_id: int | None = None,
    *,
    as_json: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    plans = {part: asyncio.run(PLANS[part](settings, execution_id)) for part in parts}
    if dry_run:
        if as_json:
            print_json({"dry_run": True, **plans})
        else:
            for part, plan in plans.items():
                click.echo(f"{part}: would rebuild {_text(plan)}")
        return
    if not yes:
        for part, plan in plans.items():
            click.echo(f"{part}: {_text(plan)}", err=True)
        click.confirm("Delete and rebuild this?", abort=True, err=True)
    done: dict[str, Part] = {}
    for part in parts:
        done[part] = asyncio.run(REBUILDS[part](settings, execution_id))
        if not as_json:
            click.echo(f"{part}: {_text(done[part])}")
    if as_json:
        print_json(done if len(parts) > 1 else done[parts[0]])
    if any(one.get(FAILURES) for one in done.values()):
        raise SystemExit(1)


def _text(values: Part) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {' '.join(map(str, one)) if isinstance(one, list) else one}"
        for name, one in values.items()
    )
