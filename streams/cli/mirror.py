"""`streams mirror`: is the mirror well, how far is it, and refilling it from the log."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streams.cli.options import SECONDS, settings_options

if TYPE_CHECKING:
    from streams.mirror.alarms import Alarm, Limits
    from streams.mirror.hanging import Hanging
    from streams.mirror.readings import Readings
    from streams.mirror.refill import Progress
    from streams.mirror.watch import AlarmChange
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
    """Name everything that is wrong with the mirror; exit 7 if anything is.

    With --deep, exit 5 if the topics do not hold what the log holds.

    \b
    Examples:
      streams mirror check
      streams mirror check --deep --json
    """
    from streams.mirror.alarms import AlarmsRaised, Limits
    from streams.mirror.rebuild import MirrorDiffers, verify

    settings, usual = _settings(file, data), Limits()
    limits = Limits(
        lag_s=usual.lag_s if lag_seconds is None else lag_seconds,
        lag_bytes=usual.lag_bytes if lag_bytes is None else lag_bytes,
    )
    alarms, _ = asyncio.run(_look(settings, limits))
    verdict = asyncio.run(verify(settings, _silent)) if deep and not alarms else None
    if as_json:
        told: dict[str, Any] = {"ok": not alarms, "alarms": [_as_json(alarm) for alarm in alarms]}
        if verdict is not None:
            told["ok"] = told["ok"] and verdict.is_clean
            told["events"] = verdict.events_count
            told["lost"], told["doubled"] = verdict.lost_count, verdict.doubled_count
        click.echo(json.dumps(told))
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
    """Show how far the mirror is behind, its slot and its connector.

    \b
    Examples:
      streams mirror status
      streams mirror status --json
    """
    from streams.mirror.alarms import Limits

    alarms, readings = asyncio.run(_look(_settings(file, data), Limits()))
    shown = {**_shown(readings), "alarms": [str(alarm.name) for alarm in alarms]}
    if as_json:
        click.echo(json.dumps(shown))
        return
    for key, value in shown.items():
        click.echo(f"{key.replace('_', ' '):<22}{_in_words(value)}")


@mirror.command()
@settings_options
@click.option("--seconds", type=SECONDS, help="Stop after this long  [default: never]")
def watch(file: Path | None, data: Path | None, as_json: bool, seconds: float | None) -> None:
    """Tell each alarm as it begins and ends; with --json, one object a line.

    \b
    Examples:
      streams mirror watch
      streams mirror watch --seconds 60 --json
    """
    from streams.mirror.watch import watch as watch_changes

    async def follow() -> None:
        async with aclosing(watch_changes(settings)) as changes:
            async for change in changes:
                _tell(change, as_json)

    async def for_a_while() -> None:
        try:
            async with asyncio.timeout(seconds):
                await follow()
        except TimeoutError:
            return

    settings = _settings(file, data)
    asyncio.run(for_a_while())


@mirror.command()
@settings_options
@click.option("--dry-run", is_flag=True, help="Name them; change nothing.")
def mend(file: Path | None, data: Path | None, as_json: bool, dry_run: bool) -> None:
    """End transactions on Kafka that hang, which hold up everybody who reads the mirror.

    One can stay behind when a broker is killed. Its records count as aborted, and are
    mirrored again. What is open is looked at twice, 40 s apart: a living transaction ends
    sooner. A stack of `streams up` does this by itself.

    \b
    Examples:
      streams mirror mend --dry-run
      streams mirror mend --json
    """
    from streams.mirror.hanging import HANGS_AFTER_S, Lookout, end_hanging

    bootstrap = _settings(file, data).event_store.connection.url

    async def found_in_time() -> tuple[Hanging, ...]:
        lookout = Lookout(bootstrap)
        await lookout.look()
        if not lookout.is_waiting:
            return ()
        click.echo(f"transactions are open; looking again in {HANGS_AFTER_S:.0f} s", err=True)
        await asyncio.sleep(HANGS_AFTER_S)
        return await lookout.look()

    found = asyncio.run(found_in_time())
    if found and not dry_run:
        asyncio.run(end_hanging(bootstrap, found))
    if as_json:
        told = {"dry_run": dry_run, "hanging": [dataclasses.asdict(one) for one in found]}
        click.echo(json.dumps(told))
        return
    for one in found:
        click.echo(f"{one}" if dry_run else f"{one}; it was ended")
    if not found:
        click.echo("no transaction hangs")


@mirror.command()
@settings_options
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Compare with the log afterwards."
)
def rebuild(
    file: Path | None, data: Path | None, as_json: bool, dry_run: bool, yes: bool, verify: bool
) -> None:
    """Empty the event topics and refill them from the log, in order.

    Appends may go on. Readers must begin again: the topics are new ones. If it is broken
    off, run it again.

    \b
    Examples:
      streams mirror rebuild --dry-run
      streams mirror rebuild --yes --json
    """
    from streams.mirror import rebuild as room

    settings = _settings(file, data)
    plan = asyncio.run(room.outlook(settings))
    if dry_run:
        if as_json:
            told = {"dry_run": True, "topics": plan.topics, "events": plan.events_count}
            click.echo(json.dumps(told))
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
    done = asyncio.run(room.rebuild(settings, _progress, verify=verify))
    if as_json:
        told = {
            "events": done.events_count,
            "seconds": round(done.seconds, 3),
            "topics": done.by_topic,
            "verified": done.verdict is not None,
            "lost": done.verdict.lost_count if done.verdict else None,
            "doubled": done.verdict.doubled_count if done.verdict else None,
        }
        click.echo(json.dumps(told))
    else:
        proof = ", every one compared with the log" if done.verdict else ""
        click.echo(f"{done.events_count:,} events mirrored in {done.seconds:.1f} s{proof}")


def _settings(file: Path | None, data: Path | None) -> Settings:
    from streams.local.settings import load_settings

    return load_settings(file, data).settings


async def _look(settings: Settings, limits: Limits) -> tuple[tuple[Alarm, ...], Readings]:
    from streams.mirror.alarms import judge
    from streams.mirror.guard import Guard

    async with Guard(settings, limits) as guard:
        readings = await guard.probe()
    return judge(readings, limits), readings


def _shown(readings: Readings) -> dict[str, Any]:
    from streams.mirror.watermark import lsn_text

    database, trip = readings.database, readings.round_trip_s
    slot = database.slot if database else None
    return {
        "lag_bytes": readings.lag_bytes,
        "lag_seconds": None if trip is None or math.isinf(trip) else round(trip, 3),
        "log_lsn": lsn_text(database.current_lsn) if database else None,
        "mirror_lsn": None if readings.stored_lsn is None else lsn_text(readings.stored_lsn),
        "slot": None
        if slot is None
        else {
            "active": slot.is_active,
            "wal_status": slot.wal_status,
            "safe_wal_bytes": slot.safe_wal_bytes,
            "confirmed": None if slot.confirmed_lsn is None else lsn_text(slot.confirmed_lsn),
        },
        "connector": None
        if readings.connector is None
        else {
            "state": readings.connector.state,
            "tasks": [task.state for task in readings.connector.tasks],
        },
        "rebuilding": database.is_rebuilding if database else None,
    }


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(one)}" for name, one in value.items())
    if isinstance(value, list):
        return " ".join(value) or "none"
    return "unknown" if value is None else str(value)


def _as_json(alarm: Alarm) -> dict[str, str]:
    return {"name": str(alarm.name), "what": alarm.what, "remedy": alarm.remedy}


def _tell(change: AlarmChange, as_json: bool) -> None:
    if as_json:
        told = {
            "raised": [_as_json(alarm) for alarm in change.raised],
            "cleared": [str(alarm.name) for alarm in change.cleared],
        }
        click.echo(json.dumps(told))
        return
    for alarm in change.raised:
        click.echo(f"ALARM {alarm}")
    for alarm in change.cleared:
        click.echo(f"over  {alarm.name}")


def _progress(progress: Progress) -> None:
    click.echo(str(progress), err=True)


def _silent(_: Progress) -> None:
    """A check prints its findings only."""
