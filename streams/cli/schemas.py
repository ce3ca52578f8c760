"""`streams schemas`: check, release, list and publish the Avro schemas of the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import json_option
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.schema.publish import Publication
    from streams.schema.release import Verdict

_folder = click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Schemas to work on; by default the project's avro_schemas/.",
)


@click.group()
def schemas() -> None:
    """Check, release and publish the log's Avro schemas.

    \b
    Example:
      streams schemas check
    """


@schemas.command()
@_folder
@json_option
def check(folder: Path | None, as_json: bool) -> None:
    """Compare every working schema with all its releases, in both directions.

    Compatible unreleased changes are listed. For incompatible ones it prints the field and the
    reason, and exits with 3.

    \b
    Example:
      streams schemas check --json
    """
    from streams.schema.release import State
    from streams.schema.release import check as judge

    verdicts = judge(_chosen(folder))
    broken = [one for one in verdicts if one.state is State.INCOMPATIBLE]
    if as_json:
        _print_indented({"compatible": not broken, "schemas": [_verdict(one) for one in verdicts]})
    else:
        for one in verdicts:
            released = f" (newest release: {one.newest.version})" if one.newest else ""
            click.echo(f"{one.name}: {one.state}{released}")
            for line in dict.fromkeys(str(found) for found in one.breaks):
                click.echo(f"  {line}")
    if broken:
        names = ", ".join(one.name for one in broken)
        raise Refused(
            f"{names}: incompatible with a release, see above; stored records must stay "
            "readable, so change the working schema"
        )


@schemas.command()
@click.argument("name")
@_folder
@click.option("--dry-run", is_flag=True, help="Print the release; write nothing.")
@json_option
def release(name: str, folder: Path | None, dry_run: bool, as_json: bool) -> None:
    """Release the working schema NAME as its next version, with a new id.

    Writes released/NAME.VERSION.avsc and ids.yaml; commit both. Never edit a release: stored
    records refer to its id.

    \b
    Example:
      streams schemas release Event --dry-run
    """
    from streams.schema.release import release as pin

    made = pin(_chosen(folder), name, dry_run=dry_run)
    if as_json:
        _print_indented(
            {
                "name": made.name,
                "version": made.version,
                "id": made.schema_id,
                "file": made.file,
                "fingerprint": made.fingerprint,
                "written": not dry_run,
            }
        )
    else:
        verb = "would be" if dry_run else "is now"
        click.echo(
            f"{made.name} version {made.version} {verb} {made.file} with id {made.schema_id}"
        )


@schemas.command("list")
@_folder
@json_option
def list_(folder: Path | None, as_json: bool) -> None:
    """List every released schema with its id.

    \b
    Example:
      streams schemas list
    """
    from streams.schema.released import load_pins

    pins = load_pins(_chosen(folder))
    if as_json:
        rows = [
            {
                "id": pin.schema_id,
                "name": pin.name,
                "version": pin.version,
                "file": pin.file,
                "fingerprint": pin.fingerprint,
            }
            for pin in pins
        ]
        _print_indented({"schemas": rows})
        return
    for pin in pins:
        click.echo(f"{pin.schema_id}  {pin.name}  version {pin.version}  {pin.file}")
    if not pins:
        click.echo("nothing is released yet; run `streams schemas release NAME`")


@schemas.command()
@click.option("--url", required=True, help="A Confluent-compatible registry's address.")
@click.option("--subject-prefix", default="", help="Put before every subject, e.g. a context.")
@click.option("--dry-run", is_flag=True, help="Print the registrations; change nothing.")
@_folder
@json_option
def publish(
    url: str, subject_prefix: str, dry_run: bool, folder: Path | None, as_json: bool
) -> None:
    """Register the released schemas in a registry under the same ids.

    Stored records contain those ids. A registry that cannot assign them is refused, with the
    reason, and not changed. Idempotent.

    \b
    Example:
      streams schemas publish --url http://127.0.0.1:8081/apis/ccompat/v7 --dry-run
    """
    from streams.resources import folder as asset
    from streams.schema.publish import publish_to
    from streams.schema.released import load_pins
    from streams.topology import load
    from streams.topology.subjects import subjects

    pins = load_pins(_chosen(folder))
    if not pins:
        raise Refused("no schema is released; run `streams schemas release NAME` first")
    topology = load(asset("topics"))
    names = subjects(topology, subject_prefix)
    done = asyncio.run(publish_to(url, pins, names, dry_run=dry_run))
    without_topic = sorted({pin.name for pin in pins} - set(names))
    if as_json:
        _print_indented({**_publication(done, dry_run), "without_topic": without_topic})
        return
    verb = "would be registered" if dry_run else "registered"
    for one in done.added:
        click.echo(f"{one.subject} version {one.version}: id {one.schema_id} {verb}")
    for one in done.present:
        click.echo(f"{one.subject} version {one.version}: id {one.schema_id} already registered")
    for name in without_topic:
        click.echo(f"{name}: no topic in topics/ uses it, so it has no subject")


def _chosen(folder: Path | None) -> Path:
    from streams.resources import folder as asset

    return folder or asset("avro_schemas")


def _verdict(verdict: Verdict) -> dict[str, object]:
    return {
        "name": verdict.name,
        "state": verdict.state.name.lower(),
        "newest_version": verdict.newest.version if verdict.newest else None,
        "breaks": [
            {
                "version": one.version,
                "direction": one.found.direction,
                "path": one.found.path,
                "why": one.found.why,
            }
            for one in verdict.breaks
        ],
    }


def _publication(done: Publication, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "registry": done.registry,
        "added": [one.as_dict() for one in done.added],
        "present": [one.as_dict() for one in done.present],
    }


def _print_indented(value: object) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
