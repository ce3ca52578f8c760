"""`streams demo`: the two-minute tour on the embedded stack."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import COUNT, data_option, json_option

if TYPE_CHECKING:
    from streams.demo.tour import Progress, Tour
    from streams.settings import Settings


@click.command()
@data_option
@click.option(
    "--executions", type=COUNT, default=5, show_default=True, help="How many to run side by side."
)
@click.option("--frames", type=COUNT, default=40, show_default=True, help="Frames in each.")
@json_option
def demo(data: Path | None, executions: int, frames: int, as_json: bool) -> None:
    """Append events, see them mirrored to Kafka, read them back and compare.

    Uses the stack that is up, or starts one and stops it afterwards.

    \b
    Examples:
      streams demo
      streams demo --executions 20 --json
    """
    from streams.demo.page import write_page
    from streams.local.layout import layout_of

    tour = asyncio.run(_run(data, executions, frames, as_json))
    page = layout_of(data).data / "demo.html"
    write_page(tour, page)
    if as_json:
        click.echo(orjson.dumps({**_figures(tour), "page": str(page)}).decode())
        return
    click.echo("")
    for name, value in _figures(tour).items():
        click.echo(f"  {name.replace('_', ' '):<24} {value:>10,}")
    click.echo("\nevery event came back once, in order, with its checksum and its chain")
    click.echo(f"look at them:  {page.resolve().as_uri()}")
    click.echo(
        "go on:         .venv/bin/streams up, then streams status, topics plan, mirror check"
    )


async def _run(data: Path | None, executions: int, frames: int, as_json: bool) -> Tour:
    from streams.demo.tour import run_tour

    async with _stack(data, as_json) as settings:
        return await run_tour(
            settings, executions=executions, frames=frames, progress=_progress(as_json)
        )


@asynccontextmanager
async def _stack(data: Path | None, as_json: bool) -> AsyncIterator[Settings]:
    from streams.app import load_settings
    from streams.local.display import choose_display
    from streams.local.layout import layout_of
    from streams.local.stack import Stack
    from streams.local.state import find_stack

    if find_stack(data) is not None:
        yield load_settings(None, data).settings
        return
    display = choose_display(as_json=as_json)
    stack = Stack(layout_of(data).data, say=display.say, report=display.report)
    with display:
        await stack.start()
    try:
        yield load_settings(None, data).settings
    finally:
        await stack.stop()


def _progress(as_json: bool) -> Progress:
    """Show each phase as a bar where someone looks on, else as its last line."""
    shown: dict[str, int] = {}
    is_watched = sys.stderr.isatty()

    def show(phase: str, done: int, total: int) -> None:
        tenths = 10 * done // total if total else 10
        if as_json or shown.get(phase) == tenths or not (is_watched or done >= total):
            return
        shown[phase] = tenths
        bar = "█" * tenths + "░" * (10 - tenths)
        start = "\r" if is_watched else ""
        click.echo(f"{start}  {bar} {phase}: {done:,} of {total:,}", nl=done >= total, err=True)

    return show


def _figures(tour: Tour) -> dict[str, float | int]:
    return {
        "executions": tour.executions,
        "events": len(tour.events),
        "append_seconds": round(tour.append_s, 3),
        "postgres_to_kafka_ms": round(tour.mirrored_after_ms, 1),
        "checksums_verified": tour.verified,
        "repeats_ignored": tour.duplicates_ignored,
    }
