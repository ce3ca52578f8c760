"""The tool that produces records to Kafka, except to the system's own topics."""

from __future__ import annotations

import asyncio
from typing import TypedDict

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.structs import RecordMetadata
from cachetools import FIFOCache

from streams.events.model import Json
from streams.kafka.clients import idempotent_producer, started
from streams.kafka.errors import BrokerUnavailable
from streams.retry import CALL_LIMIT_S
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.task_config import failed, mapping, mappings, seconds, text

RESERVED = ("noetl.", "__")
TIMEOUT_S = 10.0
_ANSWER_S = 5.0
_STOP_S = 3.0
_CALLS = 1_000
"""Calls that a broker did not answer and may still take, for when they are made again."""


class KafkaTool:
    """Sends one record (`key`, `value`, `headers`), or each of `records`, to `topic`.

    Text is sent as is, other values as JSON, null as a tombstone. The result has partition and
    offset, once all replicas have the record. There is no fence: a retried attempt sends again,
    so consumers should deduplicate by key. A call that is retried because no broker responded
    waits for its records that are still being sent.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._under_way: FIFOCache[Call, list[asyncio.Future[RecordMetadata]]] = FIFOCache(_CALLS)

    async def run(self, config: Config, call: Call) -> Outcome:
        """Send the task's records and wait until they are durable.

        Raises:
            BrokerUnavailable: no broker responds.
        """
        try:
            topic = _allowed(text(config, "topic"))
            records = _records(config)
            limit = seconds(config, call, TIMEOUT_S)
            placed = await self._send(topic, records, call, limit)
        except TimeoutError:
            if not await self._answers():
                raise BrokerUnavailable(f"Kafka at {self._bootstrap}: no response") from None
            self._under_way.pop(call, None)
            why = f"{topic}: not acknowledged within {limit} s; does the topic exist?"
            return failed("kafka.timeout", why)
        except BadConfig as error:
            return failed("kafka.config", str(error))
        except KafkaConnectionError as error:
            raise BrokerUnavailable(f"Kafka at {self._bootstrap}: {error}") from error
        except KafkaError as error:
            return failed(f"kafka.{type(error).__name__}", f"{config.get('topic')}: {error}")
        data: dict[str, Json] = {"topic": topic, "record_count": len(placed)}
        if "records" not in config:
            data |= {"partition": placed[0].partition, "offset": placed[0].offset}
        return Outcome(status="success", data=data)

    async def close(self) -> None:
        """Wait a moment for what is under way, then close the producer."""
        if self._producer is None:
            return
        producer, self._producer = self._producer, None
        try:
            async with asyncio.timeout(_STOP_S):
                await producer.stop()
        except TimeoutError:
            await producer.client.close()

    async def _send(
        self, topic: str, records: list[Config], call: Call, limit_s: float | None
    ) -> list[RecordMetadata]:
        producer = await self._started()
        async with asyncio.timeout(limit_s):
            sent = self._under_way.setdefault(call, [])
            for one in records[len(sent) :]:
                sent.append(await producer.send(topic, **_record(one)))
            if sent:
                await asyncio.wait(sent)  # a timeout must not cancel them
        self._under_way.pop(call, None)
        return [one.result() for one in sent]

    async def _answers(self) -> bool:
        """Return whether a broker answers any question."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                await (await self._started()).client.fetch_all_metadata()
        except (KafkaError, TimeoutError):
            return False
        return True

    async def _started(self) -> AIOKafkaProducer:
        try:
            async with self._starting, asyncio.timeout(CALL_LIMIT_S):
                if self._producer is None:
                    self._producer = await started(idempotent_producer(self._bootstrap))
        except TimeoutError:
            why = f"Kafka at {self._bootstrap}: no answer within {CALL_LIMIT_S:g} s"
            raise BrokerUnavailable(why) from None
        return self._producer


class _Record(TypedDict):
    """Arguments of the producer for one record."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]] | None


def _allowed(topic: str) -> str:
    if topic.startswith(RESERVED):
        raise BadConfig(
            f"topic {topic!r} belongs to the system; a playbook starts others through "
            "the `playbook` tool, and writes to topics of its own"
        )
    return topic


def _records(config: Config) -> list[Config]:
    if config.get("records") is None:
        return [config]
    if (records := mappings(config, "records")) is None:
        raise BadConfig("'records' must be a list of mappings with 'key' and 'value'")
    return records


def _record(record: Config) -> _Record:
    headers = [(name, _bytes(v) or b"") for name, v in mapping(record, "headers").items()]
    return {
        "key": _bytes(record.get("key")),
        "value": _bytes(record.get("value")),
        "headers": headers or None,
    }


def _bytes(value: Json) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else orjson.dumps(value)
