"""`streams triggers`: compare the trigger topic and subscribed topics with their ledger."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of

if TYPE_CHECKING:
    from streams.settings import Settings
    from streams.trigger.reconcile import ReconcileReport

INCONSISTENT = 5
NOT_COMPARED = 4


@click.group()
def triggers() -> None:
    """Compare the trigger topic and subscribed topics with their ledger.

    \b
    Example:
      streams triggers reconcile
    """


@triggers.command("reconcile")
@settings_options
def reconcile_command(file: Path | None, data: Path | None, as_json: bool) -> None:
    """Compare the records on the broker with the ledger, and list every gap.

    Covers the trigger topic and the topics of all subscriptions.

    A gap is `waiting` if the trigger process has not reached it, and `missing` if it is past
    it. Exits with 5 when records are missing, when the broker deleted unread ones, or when the
    ledger has records that the broker lost; with 4 when a topic cannot be read.

    \b
    Examples:
      streams triggers reconcile
      streams triggers reconcile --json
    """

    compared = asyncio.run(_compare(file, data))
    if as_json:
        rows = [_subscription_json(one) for one in compared.subscriptions]
        print_json({**_report_json(compared.triggers), "subscriptions": rows})
    else:
        _print_report(compared.triggers)
        for one in compared.subscriptions:
            _print_subscription(one)
    if not compared.is_whole:
        sys.exit(INCONSISTENT)
    if any(one.error is not None for one in compared.subscriptions):
        sys.exit(NOT_COMPARED)


@dataclass(frozen=True, slots=True)
class ComparedSubscription:
    """A subscription's topic and its ledger; `error`: why they cannot be compared."""

    path: str
    report: ReconcileReport | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ComparedTopics:
    """The trigger topic and every subscription's."""

    triggers: ReconcileReport
    subscriptions: tuple[ComparedSubscription, ...]

    @property
    def is_whole(self) -> bool:
        """Return whether no record is lost."""
        reports = [one.report for one in self.subscriptions if one.report is not None]
        return all(report.is_whole for report in (self.triggers, *reports))


async def _compare(file: Path | None, data: Path | None) -> ComparedTopics:
    from streams.cli.subscription_access import subscription_access
    from streams.errors import Unavailable

    triggers = await _reconcile(settings_of(file, data))
    found = []
    async with subscription_access(file, data) as access:
        for state in await access.subscriptions.all():
            document = await access.subscriptions.document(state)
            if document.kafka is None:
                continue
            try:
                topic = await access.topic(state, document)
                report = await topic.reconcile(state, access.ledger)
            except Unavailable as error:
                found.append(ComparedSubscription(state.path, error=str(error)))
            else:
                found.append(ComparedSubscription(state.path, report))
    return ComparedTopics(triggers, tuple(found))


def _subscription_json(one: ComparedSubscription) -> dict[str, object]:
    compared = {} if one.report is None else _report_json(one.report)
    return {"path": one.path, **compared, "error": one.error}


def _print_subscription(one: ComparedSubscription) -> None:
    click.echo(f"subscription {one.path}")
    if one.report is None:
        click.echo(f"  cannot be compared: {one.error}")
    else:
        _print_report(one.report)


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
