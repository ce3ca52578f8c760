"""`streams projections shadow`: a new version is built, compared, cut over to and rolled back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import COUNT, options, settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently
from streams.cli.rebuild_progress import show_shadow
from streams.cli.shadow_output import (
    print_change,
    print_comparison,
    print_cutover,
    print_states,
)

if TYPE_CHECKING:
    from streams.projector.business.shadow.build import OnShadow, ShadowProgress
    from streams.projector.business.shadow.compare import Comparison
    from streams.projector.business.shadow.core import VersionChange
    from streams.projector.business.shadow.operations import Cutover, VersionState
    from streams.settings import Settings

_name = click.argument("name")
_dry_run = click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
_version = click.option("--version", type=COUNT, required=True, help="The version.")
_change_options = options(_name, _dry_run, settings_options)


@click.group()
def shadow() -> None:
    """Replace a version of a projection while it serves: blue/green.

    The new version is folded from the log beside the old one, compared with it, and cut over to.
    Projectors then maintain both, until one is dropped.

    \b
    Example:
      streams projections shadow build patients_per_facility --version 2 --playbook pft.yaml
      streams projections shadow compare patients_per_facility
      streams projections shadow cutover patients_per_facility
    """


@shadow.command()
@_name
@_version
@click.option(
    "--playbook",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file that declares the version  [default: executions or a package do]",
)
@_dry_run
@settings_options
def build(
    name: str,
    version: int,
    playbook: Path | None,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Fold a new version for every execution; the old one serves meanwhile.

    If it is interrupted, run it again. Register a playbook with the new version only afterwards:
    the first execution that has it would else be served alone.

    \b
    Examples:
      streams projections shadow build patients_per_facility --version 2 --playbook pft.yaml
      streams projections shadow build patients_per_facility --version 2 --dry-run --json
    """
    settings = settings_of(file, data)
    if dry_run:
        print_change(asyncio.run(_plan(settings, name, version, playbook)), as_json=as_json)
        return
    report = show_shadow()
    done = asyncio.run(_build(settings, name, version, playbook, report))
    values = {
        "projection": name,
        "version": version,
        "executions": done.executions,
        "events": done.events,
        "seconds": round(done.seconds, 3),
    }
    if as_json:
        print_json(values)
        return
    click.echo(f"{name} v{version}: {done.executions} executions, {done.events} events")
    click.echo(f"compare it: streams projections shadow compare {name}")


@shadow.command()
@_name
@settings_options
def compare(name: str, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Compare the version in the shadow with the one that serves, key by key.

    Exit code 1 if rows differ where the declarations do not.

    \b
    Example:
      streams projections shadow compare patients_per_facility --json
    """
    found = asyncio.run(patiently(lambda: _compare(settings_of(file, data), name)))
    print_comparison(found, as_json=as_json)
    if found.undeclared:
        raise SystemExit(1)


@shadow.command()
@click.option("--accept", metavar="DIGEST", help="Accept the difference that `compare` showed.")
@_change_options
def cutover(
    name: str,
    accept: str | None,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Let the version in the shadow serve; readers see either version, never both.

    The versions are compared first. With event_store.replay.require_projection_parity, the new
    one must also equal a replay of the log.

    \b
    Examples:
      streams projections shadow cutover patients_per_facility --dry-run
      streams projections shadow cutover patients_per_facility --accept 5f6c2a81d0b94e37
    """
    settings = settings_of(file, data)
    done = asyncio.run(_cutover(settings, name, accept, dry_run))
    print_cutover(done, as_json=as_json)


@shadow.command()
@_change_options
def rollback(name: str, dry_run: bool, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Let the previous version serve again; nothing is folded, as projectors maintain it.

    \b
    Example:
      streams projections shadow rollback patients_per_facility
    """
    change = asyncio.run(_rollback(settings_of(file, data), name, dry_run))
    print_change(change, as_json=as_json, is_dry_run=dry_run)


@shadow.command()
@_version
@_change_options
def drop(
    name: str, version: int, dry_run: bool, file: Path | None, data: Path | None, as_json: bool
) -> None:
    """Give up a version that does not serve: its rows are deleted, and it is folded no more.

    \b
    Example:
      streams projections shadow drop patients_per_facility --version 1
    """
    change = asyncio.run(_drop(settings_of(file, data), name, version, dry_run))
    print_change(change, as_json=as_json, is_dry_run=dry_run)


@shadow.command()
@click.argument("name", required=False)
@settings_options
def status(name: str | None, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Show the versions of projections, and whether projectors maintain them in step.

    \b
    Example:
      streams projections shadow status --json
    """
    found = asyncio.run(patiently(lambda: _status(settings_of(file, data), name)))
    print_states(found, as_json=as_json)


async def _plan(
    settings: Settings, name: str, version: int, playbook: Path | None
) -> VersionChange:
    from streams.roles.projection_shadow import plan_shadow

    return await plan_shadow(settings, name, version, playbook)


async def _build(
    settings: Settings, name: str, version: int, playbook: Path | None, report: OnShadow
) -> ShadowProgress:
    from streams.roles.projection_shadow import run_build

    return await run_build(settings, name, version, playbook, report)


async def _compare(settings: Settings, name: str) -> Comparison:
    from streams.roles.projection_shadow import open_operations

    async with open_operations(settings) as operations:
        return await operations.compare(name)


async def _cutover(
    settings: Settings, name: str, accepted: str | None, is_dry_run: bool
) -> Cutover:
    from streams.roles.projection_shadow import open_operations

    async with open_operations(settings) as operations:
        return await operations.cutover(name, accepted=accepted, is_dry_run=is_dry_run)


async def _rollback(settings: Settings, name: str, is_dry_run: bool) -> VersionChange:
    from streams.roles.projection_shadow import open_operations

    async with open_operations(settings) as operations:
        return await operations.rollback(name, is_dry_run=is_dry_run)


async def _drop(settings: Settings, name: str, version: int, is_dry_run: bool) -> VersionChange:
    from streams.roles.projection_shadow import open_operations

    async with open_operations(settings) as operations:
        return await operations.drop(name, version, is_dry_run=is_dry_run)


async def _status(settings: Settings, name: str | None) -> list[VersionState]:
    from streams.roles.projection_shadow import open_operations

    async with open_operations(settings) as operations:
        return await operations.status(name)
