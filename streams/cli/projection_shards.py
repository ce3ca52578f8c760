"""`streams projections shards`: how far each projector is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently

if TYPE_CHECKING:
    from streams.projector.shard_lag import ShardLag
    from streams.settings import Settings


@click.command()
@settings_options
def shards(file: Path | None, data: Path | None, as_json: bool) -> None:
    """Show for each projector how many messages and seconds it is behind, by its checkpoints.

    A partition belongs to the shard that came furthest in it; `-` has those that no projector
    has read. The seconds are the age of the oldest event that is not projected.

    \b
    Examples:
      streams projections shards
      streams projections shards --json
    """
    settings = settings_of(file, data)
    found = asyncio.run(patiently(lambda: _lags(settings)))
    if as_json:
        print_json({"shards": [asdict(one) for one in found]})
        return
    for one in found:
        count = len(one.partitions)
        click.echo(
            f"{one.shard_id:<20} {count} partitions  {one.messages} messages  {one.seconds:.1f} s"
        )
        for part in one.partitions:
            if part.messages:
                name = f"{part.topic}/{part.partition}"
                click.echo(f"  {name:<32} {part.messages} messages  {part.seconds:.1f} s")


async def _lags(settings: Settings) -> Sequence[ShardLag]:
    from streams.app import open_pool
    from streams.projector.shard_lag_reading import shard_lags

    dsn = settings.event_store.canonical_connection.dsn("read")
    async with open_pool(dsn, limit_s=settings.runtime.call_limit_s) as pool:
        return await shard_lags(pool, settings.event_store.connection.url)
