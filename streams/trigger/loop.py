"""The trigger's loop: take a batch, validate, enter, quarantine, acknowledge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streams.clock import Clock
from streams.errors import PoisonRecord, Refused
from streams.events.catalogue import catalogue
from streams.events.errors import BadEvent
from streams.events.model import Json
from streams.events.rules import check
from streams.events.seal import INLINE_MAX_BYTES
from streams.events.types import TriggerRejected
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.feed.port import Feed, Record, TopicPartition
from streams.payload.port import JSON, PayloadStore, Scope
from streams.results.oversized_events import spill_event
from streams.trigger.core import initialized, record_bytes, rejected
from streams.trigger.port import (
    Entered,
    LedgerEntry,
    Origin,
    PlaybookVersion,
    PlaybookVersions,
    TopicIds,
    TriggerLedger,
)
from streams.trigger.record import BadTrigger, Request, understand

MAX_BATCH = 500
"""Records per transaction; more would delay the first ones."""
_Known = dict[tuple[Scope, str, int | None], PlaybookVersion | None]


class Reader(Protocol):
    """Reads the fields of a record's value, in any format."""

    async def fields(self, value: bytes | None) -> dict[str, Json]:
        """Return the fields.

        Raises:
            ValueError: the value is not a trigger record; the message says why.
            Unavailable: the schema registry cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerPorts:
    """Dependencies of the loop."""

    feed: Feed
    ledger: TriggerLedger
    playbooks: PlaybookVersions
    topic_ids: TopicIds
    payloads: PayloadStore
    dead_letters: DeadLetters
    reader: Reader
    take_ids: Callable[[int], Sequence[int]]
    clock: Clock


class Trigger:
    """Starts one execution per trigger record or key, however often a record is delivered."""

    def __init__(
        self,
        ports: TriggerPorts,
        *,
        tenant: str,
        organization: str,
        inline_bytes: int = INLINE_MAX_BYTES,
    ) -> None:
        """Use the given tenant and organization for records without their own."""
        self._ports, self._default = ports, Scope(tenant, organization)
        self._inline_bytes = inline_bytes
        self._reached: dict[TopicPartition, int] = {}

    async def take(self, batch: Mapping[TopicPartition, Sequence[Record]]) -> None:
        """Handle a batch of the feed and acknowledge it, a transaction at a time.

        Raises:
            Unavailable: a dependency is down; retrying the whole batch is safe.
        """
        records = [record for partition in sorted(batch) for record in batch[partition]]
        self._detect_recreated_topic(records)
        for first in range(0, len(records), MAX_BATCH):
            part = records[first : first + MAX_BATCH]
            await self.handle(part)
            self._ports.feed.acknowledge(part)

    async def set_aside(self, record: Record, reason: str) -> None:
        """Reject a record for an external reason, such as that it ended a process.

        Raises:
            Unavailable: a dependency is down; retrying is safe.
        """
        (trigger_id,) = self._ports.take_ids(1)
        origin = await self._origin(record)
        entry = await self._rejection(record, origin, trigger_id, PoisonRecord(reason))
        await self._quarantine([(record, *pair) for pair in await self._enter([(record, entry)])])

    def _detect_recreated_topic(self, records: Sequence[Record]) -> None:
        """Drop the cached topic id when offsets go back: the topic may have been recreated."""
        for record in records:
            if record.offset <= self._reached.get(record.topic_partition, -1):
                self._ports.topic_ids.forget()
            self._reached[record.topic_partition] = record.offset

    async def handle(self, records: Sequence[Record]) -> None:
        """Enter `records` in the ledger and quarantine the bad ones.

        Raises:
            Unavailable: a dependency is down; retrying is safe.
        """
        entered = await self._enter(await self._validate(records))
        await self._quarantine([(one, *pair) for one, pair in zip(records, entered, strict=True)])

    async def _quarantine(self, answers: Sequence[tuple[Record, LedgerEntry, Entered]]) -> None:
        for record, entry, entered in answers:
            if entered.rejected_id is not None:
                reason = entry.event.error or f"rejected before, as trigger {entered.rejected_id}"
                await self._ports.dead_letters.put(record, reason, kind="trigger")

    async def _validate(self, records: Sequence[Record]) -> list[tuple[Record, LedgerEntry]]:
        ids = self._ports.take_ids(len(records))
        known: _Known = {}
        found = []
        for record, root_id in zip(records, ids, strict=True):
            origin = await self._origin(record)
            try:
                request = await self._request(record)
                entry = await self._start(request, origin, root_id, known)
            except (PoisonRecord, BadEvent) as error:
                entry = await self._rejection(record, origin, root_id, error)
            found.append((record, entry))
        return found

    async def _origin(self, record: Record) -> Origin:
        source = record.topic_partition
        topic_id = await self._ports.topic_ids.topic_id(source.topic)
        return Origin(topic_id, source.partition, record.offset, source.topic)

    async def _request(self, record: Record) -> Request:
        whose = {"tenant": self._default.tenant_id, "organization": self._default.organization_id}
        try:
            fields = await self._ports.reader.fields(record.value)
        except ValueError as error:
            raise BadTrigger((str(error),), **whose) from error
        return understand(record, fields, **whose)

    async def _start(
        self,
        request: Request,
        origin: Origin,
        execution_id: int,
        known: _Known,
    ) -> LedgerEntry:
        scope = Scope(request.tenant, request.organization)
        wanted = (scope, request.path, request.version)
        if wanted not in known:
            known[wanted] = await self._ports.playbooks.find(*wanted)
        playbook = known[wanted]
        if playbook is None:
            which = "" if request.version is None else f" with version {request.version}"
            why = f"path: no playbook {request.path}{which} is registered"
            raise BadTrigger((why,), tenant=scope.tenant_id, organization=scope.organization_id)
        now = self._ports.clock.now()
        event = initialized(request, playbook, origin, execution_id=execution_id, now=now)
        event = await spill_event(self._ports.payloads, event, self._inline_bytes)
        check(event, catalogue())
        return LedgerEntry(origin, event, request.key)

    async def _rejection(
        self, record: Record, origin: Origin, trigger_id: int, error: Exception
    ) -> LedgerEntry:
        scope = self._default
        if isinstance(error, BadTrigger):
            scope = Scope(error.tenant, error.organization)
        reference = await self._ports.payloads.put(scope, record_bytes(record), media_type=JSON)
        event = rejected(
            origin,
            str(error),
            tenant=scope.tenant_id,
            organization=scope.organization_id,
            trigger_id=trigger_id,
            now=self._ports.clock.now(),
            record_ref=reference,
        )
        return LedgerEntry(origin, event)

    async def _enter(
        self, validated: Sequence[tuple[Record, LedgerEntry]]
    ) -> list[tuple[LedgerEntry, Entered]]:
        """Enter all at once; one by one if the database rejects, to reject only the bad ones."""
        entries = [entry for _, entry in validated]
        try:
            return list(zip(entries, await self._ports.ledger.enter(entries), strict=True))
        except Refused as error:
            if len(validated) > 1:
                return [pair for one in validated for pair in await self._enter([one])]
            record, entry = validated[0]
            if entry.event.type == TriggerRejected.TYPE:
                raise
            (trigger_id,) = self._ports.take_ids(1)
            entry = await self._rejection(record, entry.origin, trigger_id, error)
            return [(entry, (await self._ports.ledger.enter([entry]))[0])]
