"""`streams mirror`: check, watch and rebuild the mirror."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.mirror_output import (
    alarm_json,
    no_progress,
    print_change,
    print_progress,
    readings_json,
    text_of,
    verdict_json,
)
from streams.cli.options import SECONDS, settings_options
from streams.cli.output import print_json, settings_of

if TYPE_CHECKING:
    from streams.mirror.alarms import Alarm, Limits
    from streams.mirror.readings import Readings
    from streams.settings import Settings


@click.group()
def mirror() -> None:
    """Check, watch and rebuild the log's mirror on Kafka.

    \b
    Example:
      streams mirror check
    """


@mirror.command()
@settings_options
@click.option("--deep", is_flag=True, help="Also read every event topic and compare with the log.")
@click.option("--lag-seconds", type=SECONDS, help="Seconds behind that are an alarm  [default: 5]")
@click.option("--lag-bytes", type=int, help="Bytes behind that are an alarm  [default: 256 MiB]")
def check(
    file: Path | None,
    data: Path | None,
    as_json: bool,
    deep: bool,
    lag_seconds: float | None,
    lag_bytes: int | None,
) -> None:
    """Report all alarms of the mirror; exit 7 if there are any.

    With --deep, exit 5 if the topics differ from the log.

    \b
    Examples:
      streams mirror check
      streams mirror check --deep --json
    """
    from streams.mirror.alarms import AlarmsRaised, Limits
    from streams.mirror.rebuild import MirrorDiffers, verify

    settings, usual = settings_of(file, data), Limits()
    limits = Limits(
        lag_s=usual.lag_s if lag_seconds is None else lag_seconds,
        lag_bytes=usual.lag_bytes if lag_bytes is None else lag_bytes,
    )
    alarms, _ = asyncio.run(_check(settings, limits))
    verdict = asyncio.run(verify(settings, no_progress)) if deep and not alarms else None
    if as_json:
        ok = not alarms and (verdict is None or verdict.is_clean)
        counts = {} if verdict is None else verdict_json(verdict)
        print_json({"ok": ok, "alarms": [alarm_json(alarm) for alarm in alarms], **counts})
    else:
        for alarm in alarms:
            click.echo(f"{alarm.name}\n  {alarm.what}\n  -> {alarm.remedy}")
        if not alarms:
            click.echo("the mirror is well")
        if verdict is not None:
            click.echo(
                f"{verdict.events_count:,} events on Kafka, "
                f"{verdict.lost_count} lost, {verdict.doubled_count} doubled"
            )
    if alarms:
        raise AlarmsRaised(alarms)
    if verdict is not None and not verdict.is_clean:
        raise MirrorDiffers(verdict)


@mirror.command()
@settings_options
def status(file: Path | None, data: Path | None, as_json: bool) -> None:
    """Show the lag of the mirror, its slot and its connector.

    \b
    Examples:
      streams mirror status
      streams mirror status --json
    """
    from streams.mirror.alarms import Limits

    alarms, readings = asyncio.run(_check(settings_of(file, data), Limits()))
    output = {**readings_json(readings), "alarms": [str(alarm.name) for alarm in alarms]}
    if as_json:
        print_json(output)
        return
    for key, value in output.items():
        click.echo(f"{key.replace('_', ' '):<22}{text_of(value)}")


@mirror.command()
@settings_options
@click.option("--seconds", type=SECONDS, help="Stop after this long  [default: never]")
@click.option(
    "--restart", is_flag=True, help="Restart a failed connector while its slot is intact."
)
def watch(
    file: Path | None, data: Path | None, as_json: bool, seconds: float | None, restart: bool
) -> None:
    """Report each alarm as it is raised and cleared; with --json, one object per line.

    With --restart it also restarts the mirror's connector after a failure, first at once,
    then at most once a minute. A stack of `streams up` does this by itself.

    \b
    Examples:
      streams mirror watch
      streams mirror watch --seconds 60 --json
      streams mirror watch --restart
    """
    from streams.mirror.task_restart import restart_failures
    from streams.mirror.watch import watch as watch_changes

    async def follow() -> None:
        async with aclosing(watch_changes(settings)) as changes:
            async for change in changes:
                print_change(change, as_json)

    async def for_a_while() -> None:
        report = partial(click.echo, err=True)
        restarting = [restart_failures(settings, report)] if restart else []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(follow(), *restarting)

    settings = settings_of(file, data)
    asyncio.run(for_a_while())


@mirror.command()
@settings_options
@click.option("--dry-run", is_flag=True, help="List them; change nothing.")
def mend(file: Path | None, data: Path | None, as_json: bool, dry_run: bool) -> None:
    """Abort hanging transactions on Kafka, which block every reader of the mirror.

    A killed broker can leave one. Its records count as aborted and are mirrored again. Open
    transactions are read twice, 40 s apart: an active one ends sooner. A stack of
    `streams up` does this by itself.

    \b
    Examples:
      streams mirror mend --dry-run
      streams mirror mend --json
    """
    from streams.mirror.hanging import HANGS_AFTER_S, end_hanging, look_twice

    bootstrap = settings_of(file, data).event_store.connection.url

    def before_waiting() -> None:
        click.echo(f"transactions are open; looking again in {HANGS_AFTER_S:.0f} s", err=True)

    found = asyncio.run(look_twice(bootstrap, before_waiting))
    if found and not dry_run:
        asyncio.run(end_hanging(bootstrap, found))
    if as_json:
        output = {"dry_run": dry_run, "hanging": [dataclasses.asdict(one) for one in found]}
        print_json(output)
        return
    for one in found:
        click.echo(f"{one}" if dry_run else f"{one}; it was ended")
    if not found:
        click.echo("no transaction hangs")


@mirror.command()
@settings_options
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Compare with the log afterwards."
)
def rebuild(
    file: Path | None, data: Path | None, as_json: bool, dry_run: bool, yes: bool, verify: bool
) -> None:
    """Recreate the event topics and refill them from the log, in order.

    Appends may continue. Consumers must start from the beginning: the topics are new. If it is
    interrupted, run it again.

    \b
    Examples:
      streams mirror rebuild --dry-run
      streams mirror rebuild --yes --json
    """
    from streams.mirror import rebuild as mirror_rebuild

    settings = settings_of(file, data)
    plan = asyncio.run(mirror_rebuild.plan_rebuild(settings))
    if dry_run:
        if as_json:
            output = {"dry_run": True, "topics": plan.topics, "events": plan.events_count}
            print_json(output)
        else:
            click.echo(f"would delete and refill {', '.join(plan.topics)}")
            click.echo(f"with {plan.events_count:,} events of the log")
        return
    if not yes:
        click.confirm(
            f"Delete {len(plan.topics)} event topics and refill them "
            f"with {plan.events_count:,} events?",
            abort=True,
            err=True,
        )
    done = asyncio.run(mirror_rebuild.rebuild(settings, print_progress, verify=verify))
    if as_json:
        output = {
            "events": done.events_count,
            "seconds": round(done.seconds, 3),
            "topics": done.by_topic,
            "verified": done.verdict is not None,
            "lost": done.verdict.lost_count if done.verdict else None,
            "doubled": done.verdict.doubled_count if done.verdict else None,
        }
        print_json(output)
    else:
        proof = ", every one compared with the log" if done.verdict else ""
        click.echo(f"{done.events_count:,} events mirrored in {done.seconds:.1f} s{proof}")


async def _check(settings: Settings, limits: Limits) -> tuple[tuple[Alarm, ...], Readings]:
    from streams.mirror.alarms import judge
    from streams.mirror.guard import Guard

    async with Guard(settings, limits) as guard:
        readings = await guard.probe()
    return judge(readings, limits), readings
