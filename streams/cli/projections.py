"""`streams projections`: tables by key that projectors maintain for playbooks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently
from streams.cli.projection_shards import shards
from streams.cli.projections_shadow import shadow

if TYPE_CHECKING:
    from streams.events.model import Json
    from streams.payload.port import Scope
    from streams.projector.business.port import ListedProjection
    from streams.projector.business.reading import MergedPage
    from streams.settings import Settings


@click.group()
def projections() -> None:
    """Read the tables that playbooks declare in `projections:`, and the projectors' lag.

    \b
    Example:
      streams projections show patients_per_facility --where facility_id=3
    """


projections.add_command(shadow)
projections.add_command(shards)


@projections.command("list")
@settings_options
def list_command(file: Path | None, data: Path | None, as_json: bool) -> None:
    """List the built-in projections, and those of playbooks and packages.

    The latter appear with the first execution that has them.

    \b
    Example:
      streams projections list --json
    """
    from streams.projector.built_in import BUILT_IN
    from streams.projector.business.reading_json import listed_json

    settings = settings_of(file, data)
    found = asyncio.run(patiently(lambda: _listed(settings)))
    if as_json:
        built_in = [one.to_json() for one in BUILT_IN]
        print_json({"built_in": built_in, "projections": [listed_json(one) for one in found]})
        return
    for built in BUILT_IN:
        table = built.table if built.column is None else f"{built.table}.{built.column}"
        where = f"{built.store} {table} by {', '.join(built.key)}"
        _print_projection(built.name, built.version, built.source, where)
    for one in found:
        details = [
            f"{one.store} by {_parts(one.declaration.get('key'))}",
            f"{one.executions} executions",
        ]
        details += [f"{one.problems} with problems"] if one.problems else []
        details += [one.status] if one.status is not None else []
        source = _parts(one.declaration.get("source"))
        _print_projection(one.name, one.version, source, ", ".join(details))


def _print_projection(name: str, version: int, source: str, details: str) -> None:
    click.echo(f"{name:<32} v{version}  {source:<28}  {details}")


def _parts(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@projections.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), help="Default: the one that serves.")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Only this part of the key.")
@click.option("--after", metavar="JSON", help="Only after this key: `next` of the page before.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@settings_options
def show(
    name: str,
    version: int | None,
    where: Sequence[str],
    after: str | None,
    limit: int,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Show rows of a projection by key, merged over all executions.

    \b
    Examples:
      streams projections show patients_per_facility
      streams projections show patients_per_facility --where facility_id=3 --json
    """
    from streams.projector.business.reading_json import page_json

    settings, key, filters = settings_of(file, data), _key(after), dict(map(_filter, where))
    page = asyncio.run(patiently(lambda: _page(settings, name, version, filters, key, limit)))
    if as_json:
        print_json(page_json(page))
        return
    for row in page.rows:
        columns = {**row.key, **row.values}
        click.echo("  ".join(f"{column}={_text(value)}" for column, value in columns.items()))
    if page.next is not None:
        version = page.projection.version
        click.echo(f"more: --version {version} --after '{_text(page.next)}'", err=True)


def _filter(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f"{text!r} is not COLUMN=VALUE", param_hint="--where")
    return column, value


def _key(text: str | None) -> list[Json] | None:
    if text is None:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, list):
        raise click.BadParameter(f"{text!r} is not a list in JSON", param_hint="--after")
    return found


def _text(value: Json) -> str:
    return orjson.dumps(value).decode()


def _scope(settings: Settings) -> Scope:
    from streams.payload.port import Scope

    return Scope(settings.runtime.tenant_id, settings.runtime.organization_id)


async def _listed(settings: Settings) -> Sequence[ListedProjection]:
    from streams.app import open_business_queries

    async with open_business_queries(settings) as queries:
        return await queries.projections(_scope(settings))


async def _page(
    settings: Settings,
    name: str,
    version: int | None,
    filters: dict[str, str],
    after: list[Json] | None,
    limit: int,
) -> MergedPage:
    from streams.app import open_business_queries

    async with open_business_queries(settings) as queries:
        return await queries.page(
            _scope(settings), name, version=version, filters=filters, after=after, limit=limit
        )
