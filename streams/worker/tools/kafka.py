"""The tool that produces records to Kafka, except to the system's own topics."""

from __future__ import annotations

import asyncio
from typing import TypedDict

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError

from streams.events.model import Json
from streams.kafka.clients import idempotent_producer, started
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.task_config import failed, mapping, mappings, seconds, text

RESERVED = ("noetl.", "__")
TIMEOUT_S = 10.0


class KafkaTool:
    """Sends one record (`key`, `value`, `headers`), or each of `records`, to `topic`.

    Text is sent as is, other values as JSON, null as a tombstone. The result has partition and
    offset, once all replicas have the record. There is no fence: a retried attempt sends again,
    so consumers should deduplicate by key.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def run(self, config: Config, call: Call) -> Outcome:
        """Send the task's records and wait until they are durable.

        Raises:
            TargetUnavailable: no broker can be reached.
        """
        try:
            topic = _allowed(text(config, "topic"))
            records = _records(config)
            limit = seconds(config, call, TIMEOUT_S)
            producer = await self._started()
            async with asyncio.timeout(limit):
                sent = [await producer.send(topic, **_record(one)) for one in records]
                placed = await asyncio.gather(*sent)
        except TimeoutError:
            why = f"{topic}: not acknowledged within {limit} s; does the topic exist?"
            return failed("kafka.timeout", why)
        except BadConfig as error:
            return failed("kafka.config", str(error))
        except KafkaConnectionError as error:
            raise TargetUnavailable(f"Kafka at {self._bootstrap}: {error}") from error
        except KafkaError as error:
            return failed(f"kafka.{type(error).__name__}", f"{config.get('topic')}: {error}")
        data: dict[str, Json] = {"topic": topic, "record_count": len(placed)}
        if "records" not in config:
            data |= {"partition": placed[0].partition, "offset": placed[0].offset}
        return Outcome(status="success", data=data)

    async def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            await self._producer.stop()
            self._producer = None

    async def _started(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is None:
                self._producer = await started(idempotent_producer(self._bootstrap))
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
