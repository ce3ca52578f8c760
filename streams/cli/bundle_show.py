"""`streams bundle show`: events of a bundle page by page, and the state as of any of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import COUNT, json_option
from streams.cli.output import print_json
from streams.cli.replay_output import print_state
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.events.model import Event
    from streams.replay.bundle.file import BundleFile

EVENTS_OF_A_PAGE = 40
_ID = click.IntRange(min=1)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to show: a page of events, or one event and the state after it."""

    execution_id: int | None
    seq: int | None
    event_id: int | None
    page: int


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--at", "seq", type=_ID, metavar="N", help="Its Nth event, and the state there.")
@click.option(
    "--event", "event_id", type=_ID, metavar="ID", help="This event, and the state there."
)
@click.option("--page", type=COUNT, default=1, show_default=True, help="Which events to list.")
@click.option("--execution", "execution_id", type=_ID, metavar="ID", help="A child in the bundle.")
@json_option
def show(
    path: Path,
    seq: int | None,
    event_id: int | None,
    page: int,
    execution_id: int | None,
    as_json: bool,
) -> None:
    """Show what a bundle contains: a page of its events, or its state as of one of them.

    Each event that is read is verified. No server is needed.

    \b
    Examples:
      streams bundle show run.bundle --page 2
      streams bundle show run.bundle --at 120 --json
    """
    from streams.replay.bundle.file import open_bundle

    if seq is not None and event_id is not None:
        raise Refused("--at and --event are given; a state is as of one of them")
    with open_bundle(path) as opened:
        wanted = _Wanted(execution_id, seq, event_id, page)
        if seq is None and event_id is None:
            _show_events(opened, wanted, as_json)
        else:
            _show_state(opened, wanted, as_json)


def _show_events(opened: BundleFile, wanted: _Wanted, as_json: bool) -> None:
    from streams.api.event_json import event_json
    from streams.replay.bundle.reading import events_of_page

    shown, events = asyncio.run(
        events_of_page(opened, wanted.execution_id, wanted.page, EVENTS_OF_A_PAGE)
    )
    pages = -(-shown.seq // EVENTS_OF_A_PAGE)
    if as_json:
        ids = [str(one.execution_id) for one in opened.manifest.executions]
        found = {"executions": ids, "execution_id": str(shown.execution_id), "events": shown.seq}
        rows = [event_json(one) for one in events]
        print_json({**found, "page": wanted.page, "pages": pages, "events_of_page": rows})
        return
    scope = opened.manifest.scope
    click.echo(f"tenant        {scope.tenant_id}, organization {scope.organization_id}")
    for one in opened.manifest.executions:
        click.echo(f"execution     {one.execution_id}, {one.seq} events, chain {one.chain}")
    click.echo(f"page          {wanted.page} of {pages}, of execution {shown.execution_id}")
    for event in events:
        what = f"{event.type:<24} {event.node_name or '':<20} {event.status or ''}"
        click.echo(f"{event.seq:>8}  {event.ingest_time.isoformat()}  {event.event_id}  {what}")


def _show_state(opened: BundleFile, wanted: _Wanted, as_json: bool) -> None:
    from streams.api.event_json import event_json
    from streams.replay.bundle.reading import state_in
    from streams.replay.cutoff import Cutoff
    from streams.replay.state_json import state_json

    cutoff = Cutoff(seq=wanted.seq, event_id=wanted.event_id)
    event, state = asyncio.run(state_in(opened, wanted.execution_id, cutoff))
    if as_json:
        print_json({"event": event_json(event), **state_json(state, "all")})
        return
    _print_event(event)
    print_state(state, "all")


def _print_event(event: Event) -> None:
    from streams.api.event_json import event_json

    for name, value in event_json(event).items():
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        click.echo(f"{name:<20} {text}")
    click.echo("")
