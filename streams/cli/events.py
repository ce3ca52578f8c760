"""`streams events`: the event catalogue."""

from __future__ import annotations

from pathlib import Path

import click

from streams.cli.options import json_option
from streams.cli.output import print_json


@click.group()
def events() -> None:
    """Show the event catalogue.

    \b
    Example:
      streams events list
    """


@events.command("list")
@click.option("--root", help="Only events of this root, for example execution.")
@json_option
def list_command(root: str | None, as_json: bool) -> None:
    """List every event type with its root, entity, writers and reason.

    \b
    Examples:
      streams events list --root schedule
      streams events list --json
    """
    from streams.events.catalogue import catalogue

    if root is not None and root not in catalogue().roots:
        known = ", ".join(catalogue().roots)
        raise click.BadParameter(f"{root!r} is not a root; use one of {known}", param_hint="--root")
    kinds = [kind for kind in catalogue().types.values() if root in (None, kind.root)]
    if as_json:
        rows = [
            {"name": k.name, "version": k.version, "root": k.root, "entity": k.entity}
            | {"writer": k.writers[0], "writers": list(k.writers)}
            | {"claim": k.claim, "ends": k.ends, "why": k.why}
            for k in kinds
        ]
        print_json({"events": rows})
        return
    for kind in kinds:
        click.echo(f"{kind.name:<24} {kind.root:<11} {', '.join(kind.writers):<26} {kind.why}")


@events.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("docs/events.md"))
@click.option("--dry-run", is_flag=True, help="Print the page; write nothing.")
@json_option
def document(out: Path, dry_run: bool, as_json: bool) -> None:
    """Write the catalogue as a Markdown page.

    \b
    Example:
      streams events document
    """
    from streams.events.catalogue import catalogue
    from streams.events.document import document as page_of

    _write_generated(page_of(catalogue()), out, dry_run=dry_run, as_json=as_json)


@events.command()
@click.option("--dry-run", is_flag=True, help="Print the classes; write nothing.")
@json_option
def generate(dry_run: bool, as_json: bool) -> None:
    """Write streams/events/types.py: a class for each event type.

    \b
    Example:
      streams events generate
    """
    from streams.events.catalogue import catalogue
    from streams.events.generate import TYPES_FILE
    from streams.events.generate import generate as classes_of

    _write_generated(classes_of(catalogue()), TYPES_FILE, dry_run=dry_run, as_json=as_json)


@events.command()
@click.option("--dry-run", is_flag=True, help="Print the file; write nothing.")
@json_option
def lock(dry_run: bool, as_json: bool) -> None:
    """Add new upcasters to the lock file; refused if a released one has changed.

    \b
    Example:
      streams events lock
    """
    from streams.events.upcast import UPCASTERS
    from streams.events.upcaster_lock import LOCK_FILE, locked, text_of, with_new

    text = text_of(with_new(locked(), UPCASTERS.versions()))
    _write_generated(text, LOCK_FILE, dry_run=dry_run, as_json=as_json)


def _write_generated(text: str, path: Path, *, dry_run: bool, as_json: bool) -> None:
    if not dry_run:
        path.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"written": None if dry_run else str(path)})
    else:
        click.echo(text if dry_run else f"wrote {path}")
