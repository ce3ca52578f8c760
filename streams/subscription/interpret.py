"""Interpretation of messages: from a record to the execution it asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streams.events.limits import MAX_KEY_CHARS
from streams.events.model import Json
from streams.events.text import UNSTORABLE_OR_CONTROL
from streams.kafka.feed.port import Record
from streams.subscription.bodies import BodyReader
from streams.subscription.directives import (
    DirectiveValues,
    UnusableMessage,
    baggage_of,
    directive_values,
)
from streams.subscription.message import (
    Message,
    RawHeaders,
    header_values,
    kafka_metadata,
    record_id,
)
from streams.subscription.model import BodyFormat, Subscription

TRACE_HEADER, BAGGAGE_HEADER = "traceparent", "baggage"
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreted:
    """A message and what its headers set."""

    message: Message
    values: DirectiveValues
    key: str | None = None
    """The key that starts one execution within the window of `dedup`; None: none."""
    trace: str | None = None

    def playbook(self, subscription: Subscription) -> str:
        """Return the path of the playbook to start."""
        return self.values.playbook or subscription.dispatch.playbook

    def pool(self, subscription: Subscription) -> str | None:
        """Return the pool of steps that name none."""
        return self.values.execution_pool or subscription.dispatch.execution_pool


class MessageReader:
    """Interprets the messages of one subscription."""

    def __init__(self, subscription: Subscription, bodies: BodyReader) -> None:
        self._subscription, self._bodies = subscription, bodies

    async def record(self, record: Record) -> Interpreted:
        """Interpret a Kafka record.

        Raises:
            UnusableMessage: it can never start its playbook.
            Unavailable: the schema registry cannot be reached.
        """
        message_id, metadata = record_id(record), kafka_metadata(record)
        return await self.message(message_id, record.value, record.headers, metadata)

    async def message(
        self, message_id: str, value: bytes | None, raw: RawHeaders, metadata: dict[str, Json]
    ) -> Interpreted:
        """Interpret a message of any source; raises like `record`."""
        subscription = self._subscription
        rules, kafka = subscription.headers, subscription.kafka
        headers = header_values(rules, raw)
        values = directive_values(rules, headers)
        wanted = BodyFormat.AUTO if kafka is None else kafka.format
        body = await self._bodies.read(
            value, wanted, values.content_type, subscription.dispatch.payload_from
        )
        outer = {name.lower(): text for name, text in _texts(raw)}
        if baggage := baggage_of(rules, outer.get(BAGGAGE_HEADER)):
            metadata = {**metadata, "baggage": baggage}
        if body.is_base64:
            metadata = {**metadata, "encoding": "base64"}
        message = Message(
            id=message_id,
            data=body.data,
            headers=headers,
            attributes=dict(_texts(raw)) if rules.is_passed_through else {},
            metadata=metadata,
        )
        trace = _trace(outer.get(TRACE_HEADER)) if rules.propagates_trace else None
        return Interpreted(
            message=message, values=values, key=_key(subscription, message, values), trace=trace
        )


def _texts(raw: RawHeaders) -> list[tuple[str, str | None]]:
    return [
        (name, None if value is None else value.decode("utf-8", "replace")) for name, value in raw
    ]


def _trace(header: str | None) -> str | None:
    """Return a valid W3C traceparent; another value is ignored, as the standard asks."""
    return header if header is not None and _TRACEPARENT.fullmatch(header) else None


def _key(subscription: Subscription, message: Message, values: DirectiveValues) -> str | None:
    if subscription.dedup_s is None:
        return None
    key = values.idempotency_key or message.id
    if len(key) > MAX_KEY_CHARS or UNSTORABLE_OR_CONTROL.search(key):
        raise UnusableMessage(
            f"idempotency_key: must be 1 to {MAX_KEY_CHARS} characters without control characters"
        )
    return key
