"""`streams replay state --projection business_object`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from streams.cli.output import print_json
from streams.cli.patience import patiently
from streams.cli.replay_output import EventProgress

if TYPE_CHECKING:
    from streams.replay.business import ReplayedBusiness
    from streams.replay.cutoff import Cutoff
    from streams.settings import Settings


def show_business(settings: Settings, execution_id: int, cutoff: Cutoff, *, as_json: bool) -> None:
    """Print the business projections of an execution as of a moment."""
    from streams.replay.business_json import business_json

    found = asyncio.run(patiently(lambda: _state(settings, execution_id, cutoff)))
    if as_json:
        print_json(business_json(found))
        return
    at = found.as_of
    click.echo(f"as of         event {at.seq}, {at.event_type}, {at.time.isoformat()}")
    for one in found.projections:
        fold = one.fold
        name = f"{fold.fold.name} v{fold.fold.version}"
        rows = sum(state.row_count for state in fold.states.values())
        click.echo(f"projection    {name}  {len(fold.states)} keys, {rows} rows")
        for problem in fold.progress.problems:
            click.echo(f"problem       seq {problem['seq']}: {problem['what']}")
    click.echo(f"payloads      {found.payloads.length}")
    click.echo(f"events read   {found.events_read}, each verified")
    click.echo(f"checksum      {found.checksum}")


async def _state(settings: Settings, execution_id: int, cutoff: Cutoff) -> ReplayedBusiness:
    from streams.app import open_business_replay
    from streams.payload.port import Scope

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_business_replay(settings) as opened:
        return await opened.state(execution_id, scope, cutoff, on_progress=EventProgress())
