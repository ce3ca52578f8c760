"""`streams demo`: a two-minute tour on its own stack."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streams.cli.options import COUNT, json_option
from streams.cli.output import print_json

if TYPE_CHECKING:
    from streams.dev.bench.mock_server import MockWorld

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHARE = click.FloatRange(min=0, max=1)


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="The demo's folder  [default: .streams-demo]",
)
@click.option("--facilities", type=COUNT, default=2, show_default=True)
@click.option("--patients", type=COUNT, default=50, show_default=True, help="Per facility.")
@click.option("--error-rate", type=_SHARE, default=0.0, help="Share of requests answered with 503.")
@click.option("--stay", is_flag=True, help="Leave everything running until Ctrl-C.")
@json_option
def demo(
    data: Path | None,
    facilities: int,
    patients: int,
    error_rate: float,
    stay: bool,
    as_json: bool,
) -> None:
    """Run a playbook of six loops, triggered by a Kafka record, and check every saved row.

    Starts Postgres, Kafka, Connect, S3, a mock server and every role in its own folder, and
    stops them afterwards. Exits with 1 when a row is missing or doubled, or when Kafka differs
    from the log.

    \b
    Examples:
      streams demo
      streams demo --patients 200 --error-rate 0.05
      streams demo --json
    """
    from streams.data_folder import layout_of
    from streams.dev.bench.mock_server import MockWorld
    from streams.dev.demo.stack import FOLDER

    folder = layout_of(data or FOLDER).data
    world = MockWorld(facilities=facilities, patients=patients, error_rate=error_rate)
    try:
        output = asyncio.run(_run(folder, world, stay, as_json))
    except asyncio.CancelledError:
        click.echo("interrupted; everything the demo started is stopped", err=True)
        sys.exit(1)
    if not stay:
        _print(output, folder, as_json)
    if output["faults"]:
        sys.exit(1)


async def _run(folder: Path, world: MockWorld, stay: bool, as_json: bool) -> dict[str, Any]:
    from streams.dev.demo.page import write_page
    from streams.dev.demo.progress import StageRows
    from streams.dev.demo.run import run_demo
    from streams.dev.demo.stack import demo_stack
    from streams.local.display import choose_display

    _cancel_on_signal()
    began = time.monotonic()
    async with demo_stack(folder, choose_display(as_json=as_json)) as settings:
        with choose_display(as_json=as_json, began=began) as display:
            outcome = await run_demo(settings, world, StageRows(display))
        page = folder / "demo.html"
        write_page(outcome, page)
        output = {**outcome.figures(), "page": str(page), "faults": list(outcome.faults)}
        if stay:
            output |= {"total_s": round(time.monotonic() - began, 1)}
            _print(output, folder, as_json)
            # --stay ends by a cancellation.
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
    return {"total_s": round(time.monotonic() - began, 1), **output}


def _cancel_on_signal() -> None:
    """Stop in order on the first signal; a second one must not interrupt the stop."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def cancel() -> None:
        if not task.cancelling():
            task.cancel()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, cancel)


def _print(output: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        print_json(output)
        return
    click.echo("")
    for line in _summary(output):
        click.echo(f"  {line}")
    click.echo("")
    for fault in output["faults"]:
        click.echo(f"WRONG  {fault}")
    for line in _next(output, folder):
        click.echo(line)


def _summary(output: dict[str, Any]) -> Iterator[str]:
    yield f"execution {output['execution_id']} ended {output['status']}"
    split = f"{output['stages']} stages and {output['frames']} frames"
    yield f"{output['requests']:,} requests in {split}"
    yield f"{output['expected_rows']:,} rows expected, {output['saved_rows']:,} saved: " + (
        f"{output['missing']:,} missing, {output['doubled']:,} doubled"
    )
    verified = f"{output['checksums_verified']:,} verified on Kafka"
    yield f"{output['events']:,} events in the log, {verified}"
    yield f"{output['run_s']:.1f} s from the trigger to the end, {output['total_s']:.1f} s in all"


def _next(output: dict[str, Any], folder: Path) -> Iterator[str]:
    from streams.dev.demo.stack import api_url

    url, where = api_url(folder), f"--data {_short(folder)}"
    program, name = _short(Path(sys.argv[0]).absolute()), output["execution_id"]
    commands = [f"execution show {name}", f"execution events {name}"]
    # If the demo has stopped its stack, these commands must start and stop it.
    commands = commands if url else ["up --detach", *commands, "down"]
    yield f"open     {Path(output['page']).as_uri()}"
    for place, command in enumerate(commands):
        yield f"{'' if place else 'command on':<8} {program} {command} {where}"
    if url is not None:
        yield f"         curl {url}/api/executions/{name}"
    yield "read     docs/guide.md, examples/pft/playbook.yaml"


def _short(folder: Path) -> str:
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
