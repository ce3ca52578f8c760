"""`streams trigger` and `streams triggers`: start a playbook by a record; check the ledger."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from streams.cli.options import SECONDS, config_option, data_option, json_option, options

if TYPE_CHECKING:
    from streams.settings import Settings
    from streams.trigger.follow import Ending
    from streams.trigger.reconcile import Report

NOT_WELL = 7
INCONSISTENT = 5


@click.command()
@click.argument("path")
@click.option("--set", "texts", multiple=True, metavar="K=V", help="A value of the workload: text.")
@click.option(
    "--set-json", "values", multiple=True, metavar="K=JSON", help="A value of the workload: JSON."
)
@click.option("--version", "playbook_version", type=click.IntRange(min=1), help="Not the newest.")
@click.option("--key", help="Idempotency key: one execution, however often it is triggered.")
@click.option("--reply-to", metavar="TOPIC", help="Publish the outcome there, too.")
@click.option("--tenant", help="Whose execution it is  [default: the trigger process's]")
@click.option("--organization", help="The tenant's organization  [default: likewise]")
@click.option("--wait", is_flag=True, help="Wait for the end, and print status and result.")
@click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=300.0,
    show_default=True,
    help="Seconds to wait at most.",
)
@options(config_option, data_option, json_option)
def trigger(
    path: str,
    texts: tuple[str, ...],
    values: tuple[str, ...],
    playbook_version: int | None,
    key: str | None,
    reply_to: str | None,
    tenant: str | None,
    organization: str | None,
    wait: bool,
    timeout_s: float,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Start the playbook PATH by a record on the topic noetl.triggers.

    PATH names a registered playbook, or a YAML file, which is registered first.

    With --wait it exits with 0 when the execution ended COMPLETED and with 7 when it ended
    FAILED, PARTIAL or CANCELLED; with 6 when the record was rejected, and with 4 when it did
    not end in time.

    \b
    Examples:
      streams trigger examples/hello --set name=Ada --wait
      streams trigger load/patients --set-json 'days=[1, 2]' --key nightly-2026-05-16
    """
    from streams.app import load_settings

    settings = load_settings(file, data).settings
    fields: dict[str, Any] = {
        "path": path,
        "version": playbook_version,
        "workload": _workload(texts, values),
        "key": key,
        "reply_to": reply_to,
        "tenant": tenant,
        "organization": organization,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    asyncio.run(_trigger(settings, given, wait, timeout_s, as_json))


@click.group()
def triggers() -> None:
    """Look after the trigger topic and its ledger.

    \b
    Example:
      streams triggers reconcile
    """


@triggers.command("reconcile")
@options(config_option, data_option, json_option)
def reconcile_command(file: Path | None, data: Path | None, as_json: bool) -> None:
    """Compare the records on the broker with the ledger, and name every gap.

    A gap is `waiting` while the trigger process has not come so far, and `missing` when it
    went past. Exits with 5 when records are missing, when the broker dropped some unread, or
    when the ledger has some that the broker has lost.

    \b
    Examples:
      streams triggers reconcile
      streams triggers reconcile --json
    """
    from streams.app import load_settings

    report = asyncio.run(_reconcile(load_settings(file, data).settings))
    if as_json:
        click.echo(orjson.dumps(_report_json(report)).decode())
    else:
        _say(report)
    if not report.is_whole:
        sys.exit(INCONSISTENT)


async def _trigger(
    settings: Settings, fields: dict[str, Any], wait: bool, timeout_s: float, as_json: bool
) -> None:
    from streams.trigger.publish import publish

    bootstrap = settings.event_store.connection.url
    place, offset = await publish(bootstrap, fields, key=fields.get("key"))
    shown: dict[str, Any] = {"topic": place.topic, "partition": place.partition, "offset": offset}
    if not wait:
        where = f"{place.topic}, partition {place.partition}, offset {offset}"
        click.echo(orjson.dumps(shown).decode() if as_json else f"triggered: {where}")
        return
    ending = await _follow(settings, shown, timeout_s, quiet=as_json)
    if as_json:
        click.echo(orjson.dumps({**shown, **_ending_json(ending)}).decode())
    else:
        _say_ending(ending)
    if not ending.is_well:
        sys.exit(NOT_WELL)


async def _follow(
    settings: Settings, record: dict[str, Any], timeout_s: float, *, quiet: bool
) -> Ending:
    from streams.app import open_pool, open_registry
    from streams.clock import SystemClock
    from streams.envelope.codec import Codec
    from streams.log.postgres import PostgresEventStore
    from streams.trigger.follow import Follower
    from streams.trigger.kafka import KafkaTopicIds
    from streams.trigger.lookup import LedgerReader
    from streams.trigger.port import Origin

    clock = SystemClock()
    ids = KafkaTopicIds(settings.event_store.connection.url, clock)
    topic_id = await ids.topic_id(record["topic"])
    dsn = settings.event_store.canonical_connection.dsn("read")
    async with open_registry(settings) as registry, open_pool(dsn) as pool:
        log = PostgresEventStore(None, pool, await Codec.open(registry))
        follower = Follower(LedgerReader(pool), log, clock, timeout_s=timeout_s)
        origin = Origin(topic_id, record["partition"], record["offset"], record["topic"])
        execution_id = await follower.execution(origin)
        if not quiet:
            click.echo(f"execution {execution_id}", err=True)
        return await follower.end(execution_id)


async def _reconcile(settings: Settings) -> Report:
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


def _workload(texts: tuple[str, ...], values: tuple[str, ...]) -> dict[str, Any]:
    workload: dict[str, Any] = {}
    for option, given in (("--set", texts), ("--set-json", values)):
        for pair in given:
            name, equals, text = pair.partition("=")
            if not name or not equals:
                raise click.BadParameter(f"{pair!r} is not K=V", param_hint=option)
            if name in workload:
                raise click.BadParameter(f"{name!r} is given twice", param_hint=option)
            workload[name] = text if option == "--set" else _json(name, text)
    return workload


def _json(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(f"{name}: {text!r} is not JSON: {error}") from error


def _ending_json(ending: Ending) -> dict[str, Any]:
    event = ending.event
    reference = event.payload_ref
    return {
        "execution_id": str(ending.execution_id),
        "status": ending.status,
        "result": event.result,
        "result_ref": None if reference is None else reference.uri,
        "error": event.error,
    }


def _say_ending(ending: Ending) -> None:
    click.echo(ending.status)
    if ending.event.error:
        click.echo(f"error: {ending.event.error}")
    if ending.event.result is not None:
        click.echo(orjson.dumps(ending.event.result, option=orjson.OPT_INDENT_2).decode())
    if ending.event.payload_ref is not None:
        click.echo(f"result: {ending.event.payload_ref.uri}")


def _report_json(report: Report) -> dict[str, Any]:
    return {
        "topic": report.topic,
        "topic_id": report.topic_id,
        "missing": report.missing,
        "waiting": report.waiting,
        "beyond": report.beyond,
        "expired": report.expired,
        "partitions": list(report.sides),
    }


def _say(report: Report) -> None:
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
            click.echo(f"  dropped by the broker unread: up to {side.expired} records")
    if report.is_whole and not report.waiting:
        click.echo(f"{report.topic}: every record is in the ledger")
