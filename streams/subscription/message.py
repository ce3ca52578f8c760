"""A message as playbooks see it, and the workload that it becomes. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from streams.events.model import Json
from streams.kafka.feed.port import Record
from streams.subscription.directives import DirectiveValues
from streams.subscription.model import HeaderRules, PayloadFrom, Subscription

RawHeaders = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a source, decoded."""

    id: str
    data: Json
    headers: Mapping[str, Json]
    attributes: Mapping[str, Json]
    metadata: Mapping[str, Json] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        """Return the value of `message` in a workload."""
        return {
            "id": self.id,
            "data": self.data,
            "headers": dict(self.headers),
            "attributes": dict(self.attributes),
            "metadata": dict(self.metadata),
        }


def header_values(rules: HeaderRules, raw: RawHeaders) -> dict[str, Json]:
    """Return headers as JSON: of several with one name the last, null without a value."""
    found = {_name(rules, name): _text_or_base64(value) for name, value in raw}
    if rules.is_passed_through:
        return found
    known = {directive.header for directive in rules.directives}
    return {name: value for name, value in found.items() if name in known}


def kafka_metadata(record: Record, *, is_base64: bool = False) -> dict[str, Json]:
    """Return the metadata of a Kafka record."""
    source = record.topic_partition
    made: dict[str, Json] = {
        "topic": source.topic,
        "partition": source.partition,
        "offset": record.offset,
        "key": None if record.key is None else _text_or_base64(record.key),
        "timestamp_ms": record.timestamp_ms,
    }
    if record.value is None:
        made["tombstone"] = True
    if is_base64:
        made["encoding"] = "base64"
    return made


def record_id(record: Record) -> str:
    """Return the message id of a Kafka record."""
    source = record.topic_partition
    return f"{source.topic}:{source.partition}:{record.offset}"


def workload_of(
    subscription: Subscription, message: Message, values: DirectiveValues
) -> dict[str, Json]:
    """Return the workload of an execution that one message starts.

    The body's keys are at the top; it cannot replace `message`, `subscription` and `source`.
    """
    chosen = _payload(subscription.dispatch.payload_from, message)
    top: dict[str, Json] = dict(chosen) if isinstance(chosen, dict) else {"body": chosen}
    return {
        **top,
        "message": message.as_json(),
        **_common(subscription),
        **values.in_workload(),
    }


def batch_workload_of(subscription: Subscription, messages: Sequence[Message]) -> dict[str, Json]:
    """Return the workload of an execution that a batch of messages starts."""
    return {"messages": [one.as_json() for one in messages], **_common(subscription)}


def _common(subscription: Subscription) -> dict[str, Json]:
    return {"subscription": subscription.path, "source": str(subscription.source)}


def _payload(chosen: PayloadFrom, message: Message) -> Json:
    match chosen:
        case PayloadFrom.ATTRIBUTES:
            return dict(message.attributes)
        case PayloadFrom.BODY:
            data = message.data
            return data if isinstance(data, str | None) else orjson.dumps(data).decode()
        case PayloadFrom.JSON:
            return message.data


def _name(rules: HeaderRules, name: str) -> str:
    return name.lower() if rules.is_normalized else name


def _text_or_base64(value: bytes | None) -> Json:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}
