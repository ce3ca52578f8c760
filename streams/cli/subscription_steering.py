"""`streams subscription pause`, `resume` and `replay`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json
from streams.cli.subscription_access import subscription_access

_by = click.option("--by", metavar="NAME", help="Who asks; recorded in the event.")


@click.command()
@click.argument("path")
@_by
@settings_options
def pause(path: str, by: str | None, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Stop starting executions; messages wait in their topic.

    \b
    Example:
      streams subscription pause shop/orders --by ada
    """
    _steer(path, "pause", by, file, data, as_json)


@click.command()
@click.argument("path")
@_by
@settings_options
def resume(path: str, by: str | None, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Go on with the first message that has not started an execution.

    \b
    Example:
      streams subscription resume shop/orders
    """
    _steer(path, "resume", by, file, data, as_json)


@click.command()
@click.argument("path")
@click.option("--from-offset", required=True, type=click.IntRange(min=0), help="The first record.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this partition; may be repeated  [default: all]",
)
@click.option("--dry-run", is_flag=True, help="Print the ranges; replay nothing.")
@_by
@settings_options
def replay(
    path: str,
    from_offset: int,
    partitions: tuple[int, ...],
    dry_run: bool,
    by: str | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Start executions once more for records that have started one.

    The range of a partition ends with the last record that has started an execution at the
    time of this command; later records are not affected.

    \b
    Examples:
      streams subscription replay shop/orders --from-offset 1200 --partition 0
      streams subscription replay shop/orders --from-offset 0 --dry-run --json
    """

    async def run() -> list[dict[str, object]]:
        async with subscription_access(file, data) as access:
            return await access.replay(path, from_offset, partitions, by, dry_run=dry_run)

    rows = asyncio.run(run())
    if as_json:
        print_json({"dry_run": dry_run, "replays": rows})
        return
    for row in rows:
        what = f"offsets {row['from_offset']} to {row['until_offset']} (excluded)"
        click.echo(f"{path}: replays partition {row['partition']}, {what}")


def _steer(
    path: str, what: str, by: str | None, file: Path | None, data: Path | None, as_json: bool
) -> None:
    async def run() -> dict[str, object]:
        async with subscription_access(file, data) as access:
            return await access.steer(path, what, by)

    row = asyncio.run(run())
    if as_json:
        print_json(row)
    else:
        click.echo(f"{path}: {row['state']}")
