"""`streams trigger`: start a playbook by a record on the trigger topic."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import SECONDS, config_option, data_option, json_option, options
from streams.cli.output import print_json, settings_of, text_of
from streams.cli.patience import patiently
from streams.cli.workload import set_json_option, set_option, workload_of

if TYPE_CHECKING:
    from streams.catalog.port import Registered
    from streams.events.model import Json
    from streams.kafka.feed.port import TopicPartition
    from streams.settings import Settings
    from streams.trigger.follow import ExecutionEnding

NOT_COMPLETED = 7
PUBLISH_S = 30.0
"""How long a record may take: longer than a broker takes to restart."""


@click.command()
@click.argument("path")
@set_option
@set_json_option
@click.option("--version", "playbook_version", type=click.IntRange(min=1), help="Default: newest.")
@click.option("--key", help="Idempotency key: one execution, however often it is triggered.")
@click.option("--reply-to", metavar="TOPIC", help="Also publish the outcome to this topic.")
@click.option("--tenant", help="Its tenant  [default: the trigger process's]")
@click.option("--organization", help="Its organization  [default: the trigger process's]")
@click.option("--wait", is_flag=True, help="Wait for the end; print status and result.")
@click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=300.0,
    show_default=True,
    help="Longest wait in seconds.",
)
@click.option("--dry-run", is_flag=True, help="Print the record; register and publish nothing.")
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
    dry_run: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Start the playbook PATH by a record on the topic noetl.triggers.

    PATH is a registered playbook, or a file (.yaml, .yml), which is registered first.

    Exit codes with --wait: 0 COMPLETED; 7 FAILED, PARTIAL or CANCELLED; 6 the record was
    rejected; 4 the execution did not end in time.

    \b
    Examples:
      streams trigger examples/hello --set name=Ada --wait
      streams trigger load/patients --set-json 'days=[1, 2]' --key nightly-2026-05-16
      streams trigger ./hello.yaml --wait --json
    """

    fields: dict[str, Json] = {
        "path": path,
        "version": playbook_version,
        "workload": workload_of(texts, values),
        "key": key,
        "reply_to": reply_to,
        "tenant": tenant,
        "organization": organization,
    }
    is_file = Path(path).suffix in (".yaml", ".yml")
    if is_file and playbook_version is not None:
        raise click.UsageError("--version names a registered version, and PATH is a file")
    if dry_run:
        print_json(_given(fields))
        return
    settings = settings_of(file, data)
    if is_file:
        content = text_of(Path(path))
        fields |= asyncio.run(_register(settings, content, tenant, organization, quiet=as_json))
    given = _given(fields)
    output, ending = asyncio.run(_trigger(settings, given, wait, timeout_s, quiet=as_json))
    if as_json:
        print_json(output)
    else:
        _print(output)
    if ending is not None and not ending.is_well:
        sys.exit(NOT_COMPLETED)


async def _trigger(
    settings: Settings, fields: dict[str, Json], wait: bool, timeout_s: float, *, quiet: bool
) -> tuple[dict[str, Json], ExecutionEnding | None]:
    """Publish the record; return the output, and the ending with `wait`."""
    from streams.trigger.publish import publish

    bootstrap = settings.event_store.connection.url
    key = fields.get("key")
    # Its producer retries by itself: a second one could store the record twice.
    partition, offset = await publish(
        bootstrap, fields, key=key if isinstance(key, str) else None, timeout_s=PUBLISH_S
    )
    output: dict[str, Json] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": offset,
    }
    if not wait:
        return output, None
    ending = await _follow(settings, partition, offset, timeout_s, quiet=quiet)
    return {**output, **await patiently(lambda: _outcome(settings, ending))}, ending


async def _register(
    settings: Settings, content: str, tenant: str | None, organization: str | None, *, quiet: bool
) -> dict[str, Json]:
    """Register a playbook and return the fields of a record that names it."""
    from streams.app import catalog_of, open_log, open_payloads
    from streams.payload.port import Scope

    runtime = settings.runtime
    scope = Scope(tenant or runtime.tenant_id, organization or runtime.organization_id)

    async def register() -> Registered:
        async with open_log(settings, role="cli") as log, open_payloads(settings) as payloads:
            return await catalog_of(log, payloads).register(scope, content)

    found = await patiently(register)
    if not quiet:
        state = "registered" if found.is_new else "already registered"
        click.echo(f"{found.path} version {found.version} {state}", err=True)
    whose = {"tenant": scope.tenant_id, "organization": scope.organization_id}
    return {"path": found.path, "version": found.version, **whose}


async def _follow(
    settings: Settings, record: TopicPartition, offset: int, timeout_s: float, *, quiet: bool
) -> ExecutionEnding:
    from streams.app import open_pool, open_registry
    from streams.clock import SystemClock
    from streams.events.codec import Codec
    from streams.log.postgres import PostgresEventStore
    from streams.trigger.follow import Follower
    from streams.trigger.kafka import KafkaTopicIds
    from streams.trigger.lookup import LedgerReader
    from streams.trigger.port import Origin

    clock = SystemClock()
    ids = KafkaTopicIds(settings.event_store.connection.url, clock)
    topic_id = await patiently(lambda: ids.topic_id(record.topic))
    dsn = settings.event_store.canonical_connection.dsn("read")
    async with AsyncExitStack() as opened:
        registry = await opened.enter_async_context(open_registry(settings))
        pool = await patiently(lambda: opened.enter_async_context(open_pool(dsn)))
        log = PostgresEventStore(None, pool, await Codec.open(registry))
        follower = Follower(LedgerReader(pool), log, clock, timeout_s=timeout_s)
        origin = Origin(topic_id, record.partition, offset, record.topic)
        execution_id = await follower.execution(origin)
        if not quiet:
            click.echo(f"execution {execution_id}", err=True)
        return await follower.end(execution_id)


async def _outcome(settings: Settings, ending: ExecutionEnding) -> dict[str, Json]:
    """Return the outcome, with the result's data if it is JSON."""
    from streams.app import open_payloads
    from streams.payload.port import JSON

    event, result = ending.event, ending.event.result
    reference = event.payload_ref
    if reference is not None and reference.media_type == JSON:
        async with open_payloads(settings) as payloads:
            result = orjson.loads(await payloads.get(reference))
    return {
        "execution_id": str(ending.execution_id),
        "status": ending.status,
        "result": result,
        "result_ref": None if reference is None else reference.uri,
        "error": event.error,
    }


def _given(fields: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


def _print(output: dict[str, Json]) -> None:
    if "status" not in output:
        where = f"{output['topic']}, partition {output['partition']}, offset {output['offset']}"
        click.echo(f"triggered: {where}")
        return
    click.echo(str(output["status"]))
    if output["error"]:
        click.echo(f"error: {output['error']}")
    if output["result"] is not None:
        click.echo(orjson.dumps(output["result"], option=orjson.OPT_INDENT_2).decode())
    elif output["result_ref"]:
        click.echo(f"result: {output['result_ref']}")
