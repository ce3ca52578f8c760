"""`streams connectors pause`, `resume`, `lag`, `verify` and `rebuild`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.connect_call import with_connect
from streams.cli.options import SECONDS, options, settings_options
from streams.cli.output import print_json, say, settings_of

if TYPE_CHECKING:
    from streams.analytics.lag import SinkLag
    from streams.analytics.verify import Verified
    from streams.mirror.connect import ConnectClient
    from streams.settings import Settings

_one = options(click.argument("name"), settings_options)
_some = options(click.argument("names", nargs=-1), settings_options)
_dry_run = click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")


@click.command()
@_one
@_dry_run
def pause(name: str, file: Path | None, data: Path | None, as_json: bool, dry_run: bool) -> None:
    """Stop a connector from reading, until `resume`.

    \b
    Example:
      streams connectors pause noetl-analytics-events
    """
    _steer(settings_of(file, data), name, "paused", as_json, dry_run)


@click.command()
@_one
@_dry_run
def resume(name: str, file: Path | None, data: Path | None, as_json: bool, dry_run: bool) -> None:
    """Resume a connector that was paused or stopped, and wait until it runs.

    \b
    Example:
      streams connectors resume noetl-analytics-events
    """
    _steer(settings_of(file, data), name, "running", as_json, dry_run)


@click.command()
@_some
def lag(names: tuple[str, ...], file: Path | None, data: Path | None, as_json: bool) -> None:
    """Show how far each sink of Connect (or NAMES) is behind its topics, and its dead letters.

    The numbers are offsets: records, and the markers at the end of transactions. 0 is exact.

    \b
    Examples:
      streams connectors lag
      streams connectors lag noetl-analytics-events --json
    """
    from streams.analytics.lag import LagReader
    from streams.analytics.sinks import applied_sinks

    settings = settings_of(file, data)
    chosen = asyncio.run(applied_sinks(settings, names))
    reader = LagReader(settings.event_store.connection.url)
    found = [reader.read(sink) for sink in chosen]
    if as_json:
        print_json({"sinks": [_lag_json(one) for one in found]})
        return
    for one in found:
        click.echo(f"{one.sink}: {one.behind:,} behind, {one.dead_letters:,} dead letters")
        for part in one.partitions:
            if part.behind:
                click.echo(f"  {part.topic} [{part.partition}]: {part.behind:,}")


@click.command()
@_some
@click.option(
    "--within",
    "within_s",
    type=SECONDS,
    default=30.0,
    show_default=True,
    help="Seconds to wait for a sink that is behind.",
)
def verify(
    names: tuple[str, ...],
    file: Path | None,
    data: Path | None,
    as_json: bool,
    within_s: float,
) -> None:
    """Compare the rows of each sink of Connect (or NAMES) with the log; exit 5 if they differ.

    Numbers of events by tenant and event type are compared.

    \b
    Examples:
      streams connectors verify
      streams connectors verify noetl-analytics-events --json
    """
    from streams.analytics.sinks import applied_sinks
    from streams.analytics.verify import verify_sink

    settings = settings_of(file, data)

    async def work() -> list[Verified]:
        chosen = await applied_sinks(settings, names)
        return [await verify_sink(settings, one, within_s=within_s) for one in chosen]

    found = asyncio.run(work())
    if as_json:
        print_json({"sinks": [_verified_json(one) for one in found]})
        return
    for one in found:
        click.echo(f"{one.sink}: {one.rows_count:,} rows, equal to the log")


@click.command()
@_one
@_dry_run
@click.option("--keep-rows", is_flag=True, help="Write all events again without deleting rows.")
def rebuild(
    name: str,
    file: Path | None,
    data: Path | None,
    as_json: bool,
    dry_run: bool,
    keep_rows: bool,
) -> None:
    """Delete a sink's rows, let it read its topics again, and compare it with the log.

    Refused if the topics no longer have the oldest events. Running it again after a crash
    starts over.

    \b
    Example:
      streams connectors rebuild noetl-analytics-events
    """
    from streams.analytics.lag import LagReader
    from streams.analytics.rebuild import check_rebuild, rebuild_sink
    from streams.analytics.sinks import sinks

    settings = settings_of(file, data)
    (sink,) = sinks(settings, [name])
    if dry_run:
        reader = LagReader(settings.event_store.connection.url)
        lag = asyncio.run(check_rebuild(reader, sink, keep_rows=keep_rows))
        offsets = sum(one.end - one.first for one in lag.partitions)
        if as_json:
            print_json({"sink": name, "dry_run": True, "offsets": offsets})
        else:
            click.echo(f"{name}: {offsets:,} offsets of {len(sink.topics)} topics would be read")
        return
    done = asyncio.run(rebuild_sink(settings, sink, say, keep_rows=keep_rows))
    if as_json:
        print_json(_verified_json(done.verified) | {"dry_run": False, "seconds": done.seconds})
    else:
        rows = f"{done.verified.rows_count:,} rows, equal to the log"
        click.echo(f"{name}: rebuilt in {done.seconds:.0f} s, {rows}")


def _steer(settings: Settings, name: str, goal: str, as_json: bool, dry_run: bool) -> None:
    from streams.analytics import steering

    async def work(connect: ConnectClient) -> str:
        if dry_run:
            found = await connect.status(name)
        else:
            change = steering.pause if goal == "paused" else steering.resume
            found = await change(connect, name)
        return found.state.lower()

    state = with_connect(settings, work)
    if as_json:
        print_json({"name": name, "state": state, "wanted": goal, "dry_run": dry_run})
    elif dry_run:
        click.echo(f"{name}: {state}, would be {goal}")
    else:
        click.echo(f"{name}: {state}")


def _lag_json(lag: SinkLag) -> dict[str, object]:
    return {
        "sink": lag.sink,
        "behind": lag.behind,
        "dead_letters": lag.dead_letters,
        "partitions": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "end": one.end,
                "committed": one.committed,
                "behind": one.behind,
            }
            for one in lag.partitions
        ],
    }


def _verified_json(verified: Verified) -> dict[str, object]:
    counts = [
        {"tenant": tenant, "event_type": event_type, "rows": rows}
        for (tenant, event_type), rows in sorted(verified.counts.items())
    ]
    return {"sink": verified.sink, "rows": verified.rows_count, "counts": counts}
