"""`streams triggers`: compare the trigger topic with its ledger."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of

if TYPE_CHECKING:
    from streams.settings import Settings
    from streams.trigger.reconcile import ReconcileReport

INCONSISTENT = 5


@click.group()
def triggers() -> None:
    """Compare the trigger topic with its ledger.

    \b
    Example:
      streams triggers reconcile
    """


@triggers.command("reconcile")
@settings_options
def reconcile_command(file: Path | None, data: Path | None, as_json: bool) -> None:
    """Compare the records on the broker with the ledger, and list every gap.

    A gap is `waiting` if the trigger process has not reached it, and `missing` if it is past
    it. Exits with 5 when records are missing, when the broker deleted unread ones, or when the
    ledger has records that the broker lost.

    \b
    Examples:
      streams triggers reconcile
      streams triggers reconcile --json
    """

    report = asyncio.run(_reconcile(settings_of(file, data)))
    if as_json:
        print_json(_report_json(report))
    else:
        _print_report(report)
    if not report.is_whole:
        sys.exit(INCONSISTENT)


async def _reconcile(settings: Settings) -> ReconcileReport:
    from streams.app import open_pool
    from streams.clock import SystemClock
    from streams.trigger.broker import TriggerTopic
    from streams.trigger.kafka import GROUP, KafkaTopicIds
    from streams.trigger.lookup import LedgerReader
    from streams.trigger.publish import TOPIC
    from streams.trigger.reconcile import reconcile

    bootstrap = settings.event_store.connection.url
    dsn = settings.event_store.canonical_connection.dsn("read")
    topic_id = await KafkaTopicIds(bootstrap, SystemClock()).topic_id(TOPIC)
    topic = TriggerTopic(bootstrap, TOPIC, group=GROUP)
    try:
        async with open_pool(dsn) as pool:
            return await reconcile(topic, topic_id, LedgerReader(pool))
    finally:
        topic.close()


def _report_json(report: ReconcileReport) -> dict[str, object]:
    return {
        "topic": report.topic,
        "topic_id": report.topic_id,
        "missing": report.missing,
        "waiting": report.waiting,
        "beyond": report.beyond,
        "expired": report.expired,
        "partitions": list(report.sides),
    }


def _print_report(report: ReconcileReport) -> None:
    for side in report.sides:
        click.echo(
            f"partition {side.partition}: offsets {side.begin} to {side.end}, "
            f"{side.entered} records in the ledger"
        )
        for gap in side.gaps:
            where = str(gap.first) if gap.first == gap.last else f"{gap.first} to {gap.last}"
            click.echo(f"  {gap.state}: {gap.records} records at {where}")
        if side.beyond:
            click.echo(f"  lost by the broker: {side.beyond} records that the ledger has")
        if side.expired:
            click.echo(f"  deleted by the broker unread: up to {side.expired} records")
    if report.is_whole and not report.waiting:
        click.echo(f"{report.topic}: every record is in the ledger")
