"""Output of `streams projections shadow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.output import print_json

if TYPE_CHECKING:
    from streams.events.model import Json
    from streams.projector.business.shadow.compare import Comparison
    from streams.projector.business.shadow.core import VersionChange
    from streams.projector.business.shadow.operations import Cutover, VersionState
    from streams.projector.business.versions import ProjectionVersion


def print_change(change: VersionChange, *, as_json: bool, is_dry_run: bool = True) -> None:
    """Print what a command changed, or would change."""
    if as_json:
        print_json(_change_json(change, is_dry_run=is_dry_run))
        return
    verb = "would be" if is_dry_run else "is"
    for one in change.after:
        click.echo(f"{one.projection} v{one.version} {verb} {one.status}{_at(one)}")
    if not change.after:
        click.echo(f"{change.projection}: its versions stay; missing rows are folded")


def print_comparison(found: Comparison, *, as_json: bool) -> None:
    """Print how two versions differ."""
    if as_json:
        print_json(comparison_json(found))
        return
    one, other = f"v{found.serving}", f"v{found.shadow}"
    places = found.places
    click.echo(f"executions    {places.executions}, up to position {places.position}")
    click.echo(f"keys          {found.keys}, of which {found.equal} are equal in shared columns")
    click.echo(f"only in {one:<6}{found.only_serving}")
    click.echo(f"only in {other:<6}{found.only_shadow}")
    for column, count in sorted(found.columns.items()):
        click.echo(f"differs       {count} rows in {column}")
    click.echo(
        f"checksum      {one} {found.serving_checksum[:16]}  {other} {found.shadow_checksum[:16]}"
    )
    for line in found.declared.lines:
        click.echo(f"declared      {line}")
    for row in found.samples:
        values = f"{one} {_text(row.serving)}  {other} {_text(row.shadow)}"
        click.echo(f"row           {_text(row.key)}: {values}")
    for line in found.undeclared:
        click.echo(f"UNDECLARED    {line}")
    if found.is_equal:
        click.echo("equal: readers see the same rows of both")
    elif not found.undeclared:
        click.echo(f"to accept the declared difference: --accept {found.declared.digest}")


def print_cutover(done: Cutover, *, as_json: bool) -> None:
    """Print a cut-over, done or planned."""
    if as_json:
        report = done.parity
        parity = (
            None if report is None else {"executions": report.executions, "events": report.events}
        )
        print_json(
            {
                **_change_json(done.change, is_dry_run=done.is_dry_run),
                "is_equal": done.comparison.is_equal,
                "parity": parity,
            }
        )
        return
    if done.parity is None:
        click.echo("parity        not required by event_store.replay.require_projection_parity")
    else:
        report = done.parity
        click.echo(f"parity        {report.executions} executions, {report.events} events replayed")
    print_change(done.change, as_json=False, is_dry_run=done.is_dry_run)


def print_states(found: Sequence[VersionState], *, as_json: bool) -> None:
    """Print the versions of projections."""
    if as_json:
        print_json({"projections": [_state_json(one) for one in found]})
        return
    if not found:
        click.echo("every projection is served in its newest version")
    for one in found:
        for version in one.versions:
            click.echo(f"{one.projection:<32} v{version.version}  {version.status}{_at(version)}")
        if (places := one.places) is not None:
            lag = f"{places.behind} behind, {places.apart} not in step"
            click.echo(f"{'':<32} {places.executions} executions: {lag}")


def comparison_json(found: Comparison) -> dict[str, object]:
    """Return a comparison as JSON."""
    return {
        "projection": found.projection,
        "serving": found.serving,
        "shadow": found.shadow,
        "is_equal": found.is_equal,
        "executions": found.places.executions,
        "position": found.places.position,
        "keys": found.keys,
        "equal": found.equal,
        "only_serving": found.only_serving,
        "only_shadow": found.only_shadow,
        "differing_columns": found.columns,
        "checksums": {"serving": found.serving_checksum, "shadow": found.shadow_checksum},
        "declared": {"lines": found.declared.lines, "digest": found.declared.digest},
        "undeclared": found.undeclared,
        "samples": found.samples,
    }


def _change_json(change: VersionChange, *, is_dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": is_dry_run,
        "projection": change.projection,
        "versions": [_version_json(one) for one in change.after],
        "dropped": change.dropped,
    }


def _state_json(state: VersionState) -> dict[str, object]:
    places = state.places
    return {
        "projection": state.projection,
        "versions": [_version_json(one) for one in state.versions],
        "executions": None if places is None else places.executions,
        "behind": None if places is None else places.behind,
        "not_in_step": None if places is None else places.apart,
    }


def _version_json(version: ProjectionVersion) -> dict[str, object]:
    return {
        "version": version.version,
        "status": version.status,
        "digest": version.digest,
        "changed_at": version.changed_at,
        "cutover_position": version.cutover_position,
    }


def _at(version: ProjectionVersion) -> str:
    is_cut = version.status == "serving" and version.cutover_position is not None
    return f", cut over at position {version.cutover_position}" if is_cut else ""


def _text(value: Mapping[str, Json] | None) -> str:
    return "none" if value is None else orjson.dumps(value).decode()
