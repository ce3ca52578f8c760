"""Output of `streams lag`: groups, partitions and the waterfall."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from streams.cli.mirror_output import alarm_json, readings_json

if TYPE_CHECKING:
    from streams.events.model import Json
    from streams.lag.backlog import WorkBacklog
    from streams.lag.model import GroupLag, LagSum, Owner, TopicPartitionLag
    from streams.lag.report import LagReport
    from streams.lag.waterfall import HopLag, Waterfall
    from streams.mirror.alarms import Alarm
    from streams.mirror.readings import Readings

    Slot = tuple[Readings, tuple[Alarm, ...]]

EXIT_CODES = {"OK": 0, "WARN": 10, "STOP": 11, "STALL": 12, "REWIND": 13}
"""Stable, for use by other programs."""


def exit_code(report: LagReport) -> int:
    """Return the exit code of a report: that of the worst group."""
    return EXIT_CODES[report.status.name]


def lag_json(report: LagReport) -> dict[str, Json]:
    """Serialize a report for `streams lag --json`."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "status": report.status.name,
        "level": report.status.level,
        "exit_code": exit_code(report),
        "groups": [_group_json(one, report.backlogs.get(one.group)) for one in report.groups],
        "problems": list(report.problems),
    }


def print_lag(report: LagReport, *, in_full: bool) -> None:
    """Print a line for each group, with its partitions if they are wanted or behind."""
    from streams.lag.meaning import meaning_of

    for one in report.groups:
        click.echo(f"{one.group}  {one.total.status.name}  {_sum_text(one.total)}  ({one.state})")
        click.echo(f"  {meaning_of(one.group).counts}")
        if (backlog := report.backlogs.get(one.group)) is not None:
            click.echo(f"  {_backlog_text(backlog)}")
        for partition in one.partitions:
            if partition.messages or (in_full and partition.messages is not None):
                click.echo(f"  {_partition_text(partition)}")
    if not report.groups:
        click.echo("the cluster has no consumer groups")
    for problem in report.problems:
        click.echo(f"warning: {problem}", err=True)


def waterfall_json(waterfall: Waterfall, slot: Slot | None) -> dict[str, Json]:
    """Serialize the waterfall for `streams lag waterfall --json`."""
    return {
        "at": waterfall.at.isoformat(timespec="milliseconds"),
        "hops": [_hop_json(one) for one in waterfall.hops],
        "total_seconds": round(waterfall.total_s, 3),
        "complete": waterfall.is_complete,
        "slot": None
        if slot is None
        else {**readings_json(slot[0]), "alarms": [{**alarm_json(one)} for one in slot[1]]},
    }


def print_waterfall(waterfall: Waterfall, slot: Slot | None) -> None:
    """Print a line for each hop, the sum, and the slot with its alarms."""
    click.echo(f"{'hop':<24} {'behind':>10} {'adds':>10} {'waiting':>9}")
    for one in waterfall.hops:
        reading = one.reading
        name = f"{reading.hop}: {reading.name}" if reading.name else str(reading.hop)
        waiting = "unknown" if reading.waiting is None else f"{reading.waiting:,}"
        behind, adds = _seconds(reading.seconds), _seconds(one.adds_s)
        click.echo(f"{name:<24} {behind:>10} {adds:>10} {waiting:>9}  {reading.what}")
    click.echo(f"{'sum':<24} {'':>10} {_seconds(waterfall.total_s):>10}")
    if slot is None:
        return
    readings, alarms = slot
    database = readings.database
    found = database.slot if database else None
    if found is not None:
        state = "active" if found.is_active else f"inactive for {found.inactive_s:.0f} s"
        kept = "unlimited" if found.safe_wal_bytes is None else f"{found.safe_wal_bytes:,} bytes"
        click.echo(
            f"slot: {state}, WAL {found.wal_status}, {readings.lag_bytes or 0:,} bytes not "
            f"confirmed, {kept} until it is lost"
        )
    for alarm in alarms:
        click.echo(f"ALARM {alarm.name}\n  {alarm.what}\n  -> {alarm.remedy}")


def _group_json(one: GroupLag, backlog: WorkBacklog | None) -> dict[str, Json]:
    from streams.lag.meaning import meaning_of

    return {
        "group": one.group,
        "means": meaning_of(one.group).counts,
        "state": one.state,
        **_sum_json(one.total),
        "backlog": None if backlog is None else _backlog_json(backlog),
        "topics": [{"topic": its.name, **_sum_json(its)} for its in one.topics],
        "members": [_member_json(its, one.owners) for its in one.members],
        "partitions": [_partition_json(its) for its in one.partitions],
    }


def _sum_json(one: LagSum) -> dict[str, Json]:
    return {
        "status": one.status.name,
        "level": one.status.level,
        "partition_count": one.partition_count,
        "messages": one.messages,
        "messages_stable": one.messages_stable,
        "seconds": round(one.seconds, 3),
        "seconds_stable": round(one.seconds_stable, 3),
        "produce_per_s": _rounded(one.produce_rate),
        "consume_per_s": _rounded(one.consume_rate),
        "drain_seconds": _drain_json(one.drain_s),
        "skew": one.skew,
        "trend": str(one.trend),
    }


def _member_json(one: LagSum, owners: tuple[Owner, ...]) -> dict[str, Json]:
    owner = next((each for each in owners if each.member_id == one.name), None)
    return {"member": one.name, **_owner_json(owner), **_sum_json(one)}


def _partition_json(one: TopicPartitionLag) -> dict[str, Json]:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "status": one.status.name,
        "committed": one.committed,
        "end": one.end,
        "stable_end": one.stable_end,
        "messages": one.messages,
        "messages_stable": one.messages_stable,
        "seconds": _rounded(one.seconds),
        "seconds_stable": _rounded(one.seconds_stable),
        "deleted": one.deleted_count,
        "produce_per_s": _rounded(one.produce_rate),
        "consume_per_s": _rounded(one.consume_rate),
        "drain_seconds": _drain_json(one.drain_s),
        "trend": str(one.trend),
        "window": one.complete,
        "owner": None if one.owner is None else _owner_json(one.owner),
    }


def _owner_json(owner: Owner | None) -> dict[str, Json]:
    if owner is None:
        return {"client_id": None, "instance_id": None, "host": None}
    return {"client_id": owner.client_id, "instance_id": owner.instance_id, "host": owner.host}


def _backlog_json(one: WorkBacklog) -> dict[str, Json]:
    return {
        "frames_waiting": one.frames_waiting,
        "commands_waiting": one.commands_waiting,
        "rows_waiting": one.rows_waiting,
        "running": one.running,
        "whole": one.is_whole,
    }


def _hop_json(one: HopLag) -> dict[str, Json]:
    reading = one.reading
    return {
        "hop": str(reading.hop),
        "name": reading.name or None,
        "seconds": _rounded(reading.seconds),
        "adds_seconds": round(one.adds_s, 3),
        "waiting": reading.waiting,
        "what": reading.what,
    }


def _sum_text(one: LagSum) -> str:
    rates = f"in {_rate(one.produce_rate)} out {_rate(one.consume_rate)}"
    text = f"{_messages(one.messages)}  {_seconds(one.seconds)}  {rates}"
    skew = f"  skew {one.skew:g}" if one.messages else ""
    return f"{text}  drain {_drain(one.drain_s)}{skew}  {one.trend}"


def _partition_text(one: TopicPartitionLag) -> str:
    owner = "no owner" if one.owner is None else one.owner.instance_id or one.owner.client_id
    lag = "no offset" if one.messages is None else _messages(one.messages)
    open_count = (one.messages or 0) - (one.messages_stable or 0)
    open_text = f" ({open_count:,} in open transactions)" if open_count else ""
    deleted = f" ({one.deleted_count:,} deleted by retention)" if one.deleted_count else ""
    return (
        f"{one.topic}-{one.partition}  {one.status.name}  {lag}{open_text}{deleted}  "
        f"{_seconds(one.seconds)}  drain {_drain(one.drain_s)}  {one.trend}  {owner}"
    )


def _backlog_text(one: WorkBacklog) -> str:
    least = "" if one.is_whole else "at least "
    return (
        f"{least}{one.frames_waiting:,} frames of {one.rows_waiting:,} rows and "
        f"{one.commands_waiting:,} commands waiting, {one.running:,} running"
    )


def _drain_json(drain_s: float | None) -> Json:
    if drain_s is None:
        return None
    return "never" if math.isinf(drain_s) else round(drain_s, 3)


def _drain(drain_s: float | None) -> str:
    if drain_s is not None and math.isinf(drain_s):
        return "never"
    return _seconds(drain_s)


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.1f} s"


def _rate(value: float | None) -> str:
    return "?" if value is None else f"{value:,.1f}/s"
