"""`streams lag`: lag of consumer groups, and the waterfall from the log to its readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import COUNT, SECONDS, settings_options
from streams.cli.output import print_json, settings_of

if TYPE_CHECKING:
    from streams.lag.report import LagReport
    from streams.settings import Settings


@click.group(invoke_without_command=True)
@settings_options
@click.option("--group", "groups", multiple=True, help="Only this consumer group; repeatable.")
@click.option("--watch", is_flag=True, help="Measure again and again, until interrupted.")
@click.option(
    "--every", type=SECONDS, default=2.0, show_default=True, help="Seconds between, with --watch."
)
@click.option("--times", type=COUNT, help="With --watch: end after so many.")
@click.pass_context
def lag(
    context: click.Context,
    file: Path | None,
    data: Path | None,
    as_json: bool,
    groups: tuple[str, ...],
    watch: bool,
    every: float,
    times: int | None,
) -> None:
    """Show how far each consumer group of the cluster is behind, in messages and seconds.

    Exits with the worst status of the groups: 0 OK, 10 WARN, 11 STOP, 12 STALL, 13 REWIND;
    3 if a group is unknown, 4 if Kafka does not respond. Changes nothing, commits nothing.

    \b
    Examples:
      streams lag
      streams lag --group noetl.worker.default --json
      streams lag --watch --every 5
      streams lag waterfall
    """
    if context.invoked_subcommand is not None:
        return
    settings = settings_of(file, data)
    codes = [0]
    with suppress(KeyboardInterrupt):
        run = _run(settings, groups, as_json, every if watch else None, times, codes.append)
        asyncio.run(run)
    context.exit(codes[-1])


@lag.command()
@settings_options
@click.option(
    "--no-slot", is_flag=True, help="Without the slot's guard, which sends a message through."
)
def waterfall(file: Path | None, data: Path | None, as_json: bool, no_slot: bool) -> None:
    """Show the age of what has not passed each hop, from the log to the sinks, and the slot.

    Each hop adds what it is behind those before it; the sum is the age of the oldest item that
    is not through. Exits with 7 if the mirror has alarms.

    \b
    Examples:
      streams lag waterfall
      streams lag waterfall --json
    """
    from streams.cli.lag_output import print_waterfall, waterfall_json
    from streams.lag.kafka import ClusterLag
    from streams.lag.report import read_slot, read_waterfall
    from streams.mirror.alarms import AlarmsRaised

    settings = settings_of(file, data)

    async def measure() -> None:
        async with ClusterLag(settings.event_store.connection.url) as cluster:
            found = await read_waterfall(cluster, settings)
        slot = None if no_slot else await read_slot(settings)
        if as_json:
            print_json(waterfall_json(found, slot))
        else:
            print_waterfall(found, slot)
        if slot is not None and slot[1]:
            raise AlarmsRaised(slot[1])

    asyncio.run(measure())


async def _run(
    settings: Settings,
    groups: tuple[str, ...],
    as_json: bool,
    every_s: float | None,
    times: int | None,
    report_code: Callable[[int], None],
) -> None:
    """Measure once, or every so often; report the exit code of each measurement."""
    from streams.cli.lag_output import exit_code, lag_json, print_lag
    from streams.lag.kafka import ClusterLag
    from streams.lag.report import report_lag

    def output(report: LagReport) -> None:
        if as_json:
            print_json(lag_json(report))
        else:
            if every_s is not None:
                click.echo(f"--- {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
            print_lag(report, in_full=bool(groups))

    async with ClusterLag(settings.event_store.connection.url) as cluster:
        done = 0
        while True:
            report = await report_lag(cluster, settings, groups)
            output(report)
            report_code(exit_code(report))
            done += 1
            if every_s is None or done == times:
                return
            await asyncio.sleep(every_s)
