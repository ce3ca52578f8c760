"""The tool that polls a Kafka topic once, for a consumer group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from streams.events.model import Json
from streams.kafka.errors import BrokerUnavailable
from streams.retry import CALL_LIMIT_S
from streams.worker.errors import BadConfig, UnknownCredential
from streams.worker.port import Call, Config, Credentials, Outcome
from streams.worker.rows.offsets import row_of
from streams.worker.tools.subscription.poll import (
    Poll,
    PolledRecord,
    PollRefused,
    acknowledge,
    poll,
)
from streams.worker.tools.task_config import failed, text, whole

BATCH, MOST = 100, 1000
TIMEOUT_MS, LONGEST_MS = 1000, 5000
ACKS = ("on_success", "auto", "manual", "defer", "none")
_COMMITS = ("on_success", "auto")
_RESERVED = "noetl."


class SubscriptionTool:
    """`operation: poll` returns the next records of `topic` for `group`, at most `batch`.

    `ack: on_success` (or `auto`) acknowledges them with the poll, once for each call however
    often it is retried; with `manual` or `defer` the operation `ack` (or `term`) does, by
    `ack_ids`; after `nack` they are polled again. The brokers are those of the credential
    `auth`, of `brokers`, or the deployment's own.
    """

    def __init__(self, credentials: Credentials, bootstrap: str) -> None:
        self._credentials, self._bootstrap = credentials, bootstrap

    async def run(self, config: Config, call: Call) -> Outcome:
        """Poll or acknowledge.

        Raises:
            BrokerUnavailable: no broker answers.
        """
        try:
            bootstrap = await self._brokers(config, call)
            async with asyncio.timeout(CALL_LIMIT_S):
                return await _run(config, call, bootstrap)
        except (BadConfig, UnknownCredential) as error:
            return failed("subscription.config", str(error))
        except PollRefused as error:
            return failed("subscription.refused", str(error))
        except (KafkaError, TimeoutError) as error:
            why = str(error) or "no answer"
            raise BrokerUnavailable(f"Kafka of topic {config.get('topic')!r}: {why}") from error

    async def close(self) -> None:
        """Do nothing: no connection stays open."""

    async def _brokers(self, config: Config, call: Call) -> str:
        given: Json = config.get("brokers") or config.get("bootstrap_servers")
        if config.get("auth") is not None:
            name = text(config, "auth")
            fields = await self._credentials.find(call.tenant_id, call.organization_id, name)
            if any(one.startswith("sasl") or one in ("username", "password") for one in fields):
                raise BadConfig(f"credential {name!r} has a login, and brokers are plaintext only")
            given = given or fields.get("brokers") or fields.get("bootstrap_servers")
            if not given:
                raise BadConfig(f"credential {name!r} has no 'brokers'")
        if isinstance(given, list):
            return ",".join(map(str, given))
        return str(given) if given else self._bootstrap


async def _run(config: Config, call: Call, bootstrap: str) -> Outcome:
    source, operation = config.get("source", "kafka"), str(config.get("operation") or "poll")
    if source != "kafka":
        raise BadConfig(f"'source' is {source!r}; only kafka can be polled here")
    group = text(config, "group")
    if group.startswith(_RESERVED):
        raise BadConfig(f"group {group!r} belongs to the system; poll with one of your own")
    if operation == "poll":
        return await _polled(config, call, bootstrap, group)
    if operation not in ("ack", "nack", "term"):
        raise BadConfig(f"'operation' is {operation!r}, not poll, ack, nack or term")
    ends = _ends(config.get("ack_ids"))
    count = 0 if operation == "nack" else await acknowledge(bootstrap, group, ends)
    data: dict[str, Json] = {"status": "success", "operation": operation, "acked": count > 0}
    return Outcome(status="success", data=data)


async def _polled(config: Config, call: Call, bootstrap: str, group: str) -> Outcome:
    ack = str(config.get("ack") or "on_success")
    if ack not in ACKS:
        raise BadConfig(f"'ack' is {ack!r}, not one of {', '.join(ACKS)}")
    timeout_ms = min(whole(config, "timeout_ms") or TIMEOUT_MS, LONGEST_MS)
    asked = Poll(
        bootstrap=bootstrap,
        topic=text(config, "topic"),
        group=group,
        name=f"{call.execution_id}/{call.entity_id}/{call.task}/{call.partition}.{call.tries}",
        batch=max(1, min(whole(config, "batch") or BATCH, MOST)),
        timeout_s=timeout_ms / 1000,
        commits=ack in _COMMITS,
    )
    records = await poll(asked)
    messages: list[Json] = [_message(one) for one in records]
    acked = asked.commits and bool(records)
    data: dict[str, Json] = {"status": "success", "count": len(messages), "messages": messages}
    data |= {"acked": acked, "ack_ids": _ack_ids(records)}
    return Outcome(status="success", data=data)


def _message(record: PolledRecord) -> dict[str, Json]:
    headers = dict(record.headers)
    row = row_of(
        record.partition, record.offset, record.key, record.value, headers, record.timestamp
    )
    place: dict[str, Json] = {name: row[name] for name in ("partition", "offset", "key")}
    return {
        "id": _name(record),
        "data": row["value"],
        "headers": row["headers"],
        "attributes": row["headers"],
        "metadata": {"topic": record.topic, **place, "timestamp_ms": row["timestamp_ms"]},
        "ack_id": _name(record),
    }


def _ack_ids(records: Sequence[PolledRecord]) -> list[Json]:
    return [_name(one) for one in records]


def _name(record: PolledRecord) -> str:
    return f"{record.topic}:{record.partition}:{record.offset}"


def _ends(ack_ids: Json) -> dict[TopicPartition, int]:
    """Return the offset after the last acknowledged record of each partition."""
    found: dict[TopicPartition, int] = {}
    for one in ack_ids if isinstance(ack_ids, list) else [ack_ids]:
        topic, _, rest = str(one).partition(":")
        number, _, offset = rest.partition(":")
        if not (topic and number.isdigit() and offset.isdigit()):
            raise BadConfig(f"'ack_ids' has {str(one)[:80]!r}, not topic:partition:offset")
        place = TopicPartition(topic, int(number))
        found[place] = max(found.get(place, 0), int(offset) + 1)
    return found
