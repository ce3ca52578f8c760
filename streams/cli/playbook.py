"""`streams playbook`: check, test and register playbooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import json_option, settings_options
from streams.cli.output import print_json, settings_of, text_of
from streams.cli.playbook_test import test_command
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.catalog.catalog import Catalog
    from streams.catalog.port import CatalogEntry
    from streams.payload.port import Scope
    from streams.playbook.problem import Problem

_files = click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)


class PlaybooksHaveErrors(Refused):
    """At least one file has an error."""


@click.group()
def playbook() -> None:
    """Check playbooks and register them in the catalog.

    \b
    Example:
      streams playbook check examples/hello.yaml
    """


@playbook.command()
@_files
@json_option
def check(files: tuple[Path, ...], as_json: bool) -> None:
    """Report every problem with its line and column; exit 3 if one of them is an error.

    \b
    Examples:
      streams playbook check examples/hello.yaml
      streams playbook check playbooks/*.yaml --json
    """
    from streams.playbook import parse

    found = {file: parse.check(text_of(file)) for file in files}
    bad = [file for file, (made, _) in found.items() if made is None]
    if as_json:
        output = [
            {
                "file": str(file),
                "ok": made is not None,
                "spelling": parse.describe_spelling(text_of(file)),
                "problems": [_as_json(p) for p in problems],
            }
            for file, (made, problems) in found.items()
        ]
        print_json({"files": output, "errors": len(bad)})
    else:
        for file, (_, problems) in found.items():
            click.echo(f"{file}: {parse.describe_spelling(text_of(file))}")
            for problem in problems:
                click.echo(f"{file}:{problem}")
        click.echo(f"{len(files) - len(bad)} of {len(files)} playbooks can be registered")
    if bad:
        raise PlaybooksHaveErrors(f"{', '.join(map(str, bad))}: fix the errors and check again")


@playbook.command()
@_files
@click.option("--path", help="Register under this path, not the one the playbook names.")
@click.option("--dry-run", is_flag=True, help="Check only; register nothing.")
@settings_options
def register(
    files: tuple[Path, ...],
    path: str | None,
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Register playbooks; unchanged content creates no new version.

    \b
    Examples:
      streams playbook register examples/hello.yaml
      streams playbook register examples/hello.yaml --path trials/hello --json
    """
    from streams.playbook.parse import parse

    if path is not None and len(files) > 1:
        raise click.BadParameter("names one playbook; give one file", param_hint="--path")
    texts = {one: text_of(one) for one in files}
    for one, text in texts.items():
        parse(text, str(one))
    if dry_run:
        rows: list[dict[str, object]] = [{"file": str(one)} for one in files]
    else:
        rows = asyncio.run(_register(texts, path, file, data))
    if as_json:
        print_json({"dry_run": dry_run, "registered": rows})
        return
    for row in rows:
        if dry_run:
            click.echo(f"{row['file']} can be registered")
        else:
            state = "" if row["is_new"] else " (already registered)"
            click.echo(f"{row['path']} version {row['version']}{state}")


@playbook.command("list")
@settings_options
def list_command(file: Path | None, data: Path | None, as_json: bool) -> None:
    """List every playbook with its newest version.

    \b
    Examples:
      streams playbook list
      streams playbook list --json
    """

    async def run() -> list[CatalogEntry]:
        async with _catalog(file, data) as (catalog, scope):
            return list(await catalog.list(scope, kind="playbook"))

    entries = asyncio.run(run())
    if as_json:
        rows = [_entry_as_json(entry) for entry in entries]
        print_json({"playbooks": rows})
        return
    for entry in entries:
        state = "  retired" if entry.is_retired else ""
        when = f"{entry.registered_at:%Y-%m-%d %H:%M:%S}Z"
        click.echo(f"{entry.path:<40} version {entry.version:<4} {when}{state}")
    if not entries:
        click.echo("the catalog is empty; try `streams playbook register examples/hello.yaml`")


@playbook.command()
@click.argument("path")
@click.option("--version", type=click.IntRange(min=1), help="Which one  [default: the newest]")
@settings_options
def show(
    path: str, version: int | None, file: Path | None, data: Path | None, as_json: bool
) -> None:
    """Print a playbook as registered.

    \b
    Examples:
      streams playbook show examples/hello
      streams playbook show examples/hello --version 1 --json
    """

    async def run() -> tuple[CatalogEntry, str]:
        async with _catalog(file, data) as (catalog, scope):
            entry = await catalog.find(scope, path, version)
            return entry, await catalog.content(entry.catalog_id, entry.version)

    entry, content = asyncio.run(run())
    if as_json:
        print_json({**_entry_as_json(entry), "content": content})
    else:
        click.echo(content, nl=not content.endswith("\n"))


@playbook.command()
@click.option("--out", type=click.Path(path_type=Path), help="Write it here, not to the screen.")
@click.option("--dry-run", is_flag=True, help="Write nothing; print it.")
@click.option("--json", "as_json", is_flag=True, help="With --out, report the file as JSON.")
def schema(out: Path | None, dry_run: bool, as_json: bool) -> None:
    """Print the JSON Schema of playbooks, for editors.

    \b
    Examples:
      streams playbook schema
      streams playbook schema --out docs/playbook.schema.json
    """
    from streams.playbook.grammar import json_schema

    if out is None or dry_run:
        click.echo(json_schema(), nl=False)
        return
    try:
        out.write_text(json_schema(), encoding="utf-8")
    except OSError as error:
        raise Refused(f"{out}: cannot be written: {error.strerror}; choose another file") from error
    click.echo(orjson.dumps({"written": str(out)}).decode() if as_json else f"wrote {out}")


playbook.add_command(test_command)


async def _register(
    texts: dict[Path, str], path: str | None, file: Path | None, data: Path | None
) -> list[dict[str, object]]:
    output = []
    async with _catalog(file, data) as (catalog, scope):
        for name, text in texts.items():
            made = await catalog.register(scope, text, path)
            row = {"file": str(name), "path": made.path, "version": made.version}
            output.append({**row, "catalog_id": str(made.catalog_id), "is_new": made.is_new})
    return output


@asynccontextmanager
async def _catalog(file: Path | None, data: Path | None) -> AsyncIterator[tuple[Catalog, Scope]]:
    from streams.app import catalog_of, open_log, open_payloads
    from streams.payload.port import Scope

    settings = settings_of(file, data)
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_log(settings, role="api", lanes=1) as log, open_payloads(settings) as payloads:
        yield catalog_of(log, payloads), scope


def _as_json(problem: Problem) -> dict[str, object]:
    return {
        "severity": problem.severity,
        "line": problem.line,
        "column": problem.column,
        "where": problem.where,
        "message": problem.message,
        "hint": problem.hint,
    }


def _entry_as_json(entry: CatalogEntry) -> dict[str, object]:
    return {
        "path": entry.path,
        "version": entry.version,
        "catalog_id": str(entry.catalog_id),
        "kind": entry.kind,
        "content_sha256": entry.content_sha256,
        "registered_at": entry.registered_at,
        "is_retired": entry.is_retired,
    }
