"""Output of `streams mirror`: readings, alarms and progress."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from streams.cli.output import print_json

if TYPE_CHECKING:
    from streams.events.model import Json
    from streams.mirror.alarms import Alarm
    from streams.mirror.readings import Readings
    from streams.mirror.refill import Progress
    from streams.mirror.tally import MirrorVerdict
    from streams.mirror.watch import AlarmChange


def readings_json(readings: Readings) -> dict[str, Json]:
    """Serialize readings for `streams mirror status --json`."""
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


def text_of(value: object) -> str:
    """Format a value of the readings."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {text_of(one)}" for name, one in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "unknown" if value is None else str(value)


def alarm_json(alarm: Alarm) -> dict[str, str]:
    """Serialize an alarm."""
    return {"name": str(alarm.name), "what": alarm.what, "remedy": alarm.remedy}


def print_change(change: AlarmChange, as_json: bool) -> None:
    """Print raised and cleared alarms."""
    if as_json:
        output = {
            "raised": [alarm_json(alarm) for alarm in change.raised],
            "cleared": [str(alarm.name) for alarm in change.cleared],
        }
        print_json(output)
        return
    for alarm in change.raised:
        click.echo(f"ALARM {alarm}")
    for alarm in change.cleared:
        click.echo(f"over  {alarm.name}")


def print_progress(progress: Progress) -> None:
    """Print a line to standard error."""
    click.echo(str(progress), err=True)


def no_progress(_: Progress) -> None:
    """Print nothing."""


def verdict_json(verdict: MirrorVerdict) -> dict[str, int]:
    """Serialize the counts of a comparison for `streams mirror check --json`."""
    return {
        "events": verdict.events_count,
        "lost": verdict.lost_count,
        "doubled": verdict.doubled_count,
    }
