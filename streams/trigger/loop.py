"""The trigger's loop: take a batch, validate, enter, quarantine, acknowledge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from streams.clock import Clock
from streams.errors import PoisonRecord, Refused
from streams.events.errors import BadEvent
from streams.events.seal import INLINE_MAX_BYTES
from streams.events.types import TriggerRejected
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.feed.port import Feed, Record, TopicPartition
from streams.payload.port import PayloadStore
from streams.trigger.concurrent_calls import call_for_each
from streams.trigger.entries import EntryFactory, EntryPorts, KnownPlaybooks, ReaderIdentity
from streams.trigger.interpreter import Asked, Interpreter
from streams.trigger.port import (
    Entered,
    LedgerEntry,
    Origin,
    PartlyEntered,
    PlaybookVersions,
    TopicIds,
    TriggerLedger,
)

MAX_BATCH = 500
"""Records per transaction; more would delay the first ones."""
Admit = Callable[[int], Awaitable[int]]
"""Waits until records may be handled, and returns how many of the wanted ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerPorts:
    """Dependencies of the loop."""

    feed: Feed
    ledger: TriggerLedger
    playbooks: PlaybookVersions
    topic_ids: TopicIds
    payloads: PayloadStore
    dead_letters: DeadLetters
    interpreter: Interpreter
    take_ids: Callable[[int], Sequence[int]]
    clock: Clock


async def admit_all(wanted: int) -> int:
    """Return all of the wanted records: there is no limit."""
    return wanted


@dataclass(frozen=True, slots=True)
class _Validated:
    record: Record
    entry: LedgerEntry


def _place(record: Record) -> tuple[TopicPartition, int]:
    return record.topic_partition, record.offset


class Trigger:
    """Starts one execution per record, key or batch, however often a record is delivered."""

    def __init__(
        self,
        ports: TriggerPorts,
        identity: ReaderIdentity,
        *,
        inline_bytes: int = INLINE_MAX_BYTES,
        max_batch: int = MAX_BATCH,
        admit: Admit = admit_all,
    ) -> None:
        self._ports, self._identity = ports, identity
        self._max_batch, self._admit = max_batch, admit
        self._factory = EntryFactory(
            EntryPorts(
                playbooks=ports.playbooks,
                topic_ids=ports.topic_ids,
                payloads=ports.payloads,
                take_ids=ports.take_ids,
                clock=ports.clock,
            ),
            identity,
            inline_bytes=inline_bytes,
        )
        self._reached: dict[TopicPartition, int] = {}

    async def take(self, batch: Mapping[TopicPartition, Sequence[Record]]) -> None:
        """Handle a batch of the feed and acknowledge it, a transaction at a time.

        Raises:
            Unavailable: a dependency is down; retrying the whole batch is safe.
        """
        records = [record for partition in sorted(batch) for record in batch[partition]]
        self._detect_recreated_topic(records)
        while records:
            count = await self._admit(min(self._max_batch, len(records)))
            part, records = records[:count], records[count:]
            await self.handle(part)
            self._ports.feed.acknowledge(part)

    async def set_aside(self, record: Record, reason: str) -> None:
        """Reject a record for an external reason, such as that it ended a process.

        Raises:
            Unavailable: a dependency is down; retrying is safe.
        """
        rejection = _Validated(record, await self._factory.rejection(record, PoisonRecord(reason)))
        await self._quarantine([rejection], await self._enter([rejection]))

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
        validated = await self._validate(records)
        await self._quarantine(validated, await self._enter(validated))

    async def _quarantine(
        self, validated: Sequence[_Validated], answers: Mapping[Origin, tuple[LedgerEntry, Entered]]
    ) -> None:
        async def put(one: _Validated) -> None:
            entry, entered = answers[one.entry.origin]
            reason = entry.event.error or f"rejected before, as trigger {entered.rejected_id}"
            await self._ports.dead_letters.put(one.record, reason, kind=self._identity.kind)

        bad = [one for one in validated if answers[one.entry.origin][1].rejected_id is not None]
        await call_for_each(put, bad)

    async def _validate(self, records: Sequence[Record]) -> list[_Validated]:
        known: KnownPlaybooks = {}
        asked = await self._ports.interpreter.interpret(records)

        async def entries(one: Asked) -> list[_Validated]:
            return await self._entries(one, known)

        # The first one alone: the others find its playbook among the known ones.
        first = await call_for_each(entries, asked[:1])
        found = [*first, *await call_for_each(entries, asked[1:])]
        return [one for part in found for one in part]

    async def _entries(self, asked: Asked, known: KnownPlaybooks) -> list[_Validated]:
        """Return the entries of one execution; a bad batch is divided to find the bad records."""
        origins = [await self._factory.origin(record) for record in asked.records]
        try:
            if isinstance(asked.request, PoisonRecord):
                raise asked.request
            entry = await self._factory.first_event(asked.request, origins[0], known)
        except (PoisonRecord, BadEvent) as error:
            if len(asked.records) > 1:
                return await self._divided(asked.records)
            (record,) = asked.records
            return [_Validated(record, await self._factory.rejection(record, error))]
        request = asked.request
        return [
            _Validated(record, LedgerEntry(origin, entry, request.key, request.window_s))
            for record, origin in zip(asked.records, origins, strict=True)
        ]

    async def _divided(self, records: Sequence[Record]) -> list[_Validated]:
        middle = len(records) // 2
        halves = records[:middle], records[middle:]
        return [one for half in halves for one in await self._validate(half)]

    async def _enter(
        self, validated: Sequence[_Validated]
    ) -> dict[Origin, tuple[LedgerEntry, Entered]]:
        """Enter all at once; divided if the database rejects, to reject only the bad ones."""
        if not validated:
            return {}
        entries = [one.entry for one in validated]
        try:
            answers = await self._ports.ledger.enter(entries)
        except PartlyEntered as error:
            return await self._enter_rest(validated, error.known)
        except Refused as error:
            return await self._enter_divided(validated, error)
        pairs = zip(entries, answers, strict=True)
        return {entry.origin: (entry, answer) for entry, answer in pairs}

    async def _enter_rest(
        self, validated: Sequence[_Validated], known: frozenset[Origin]
    ) -> dict[Origin, tuple[LedgerEntry, Entered]]:
        """Enter the records of a divided batch: the known ones, then the others anew."""
        found = await self._enter([one for one in validated if one.entry.origin in known])
        others = [one.record for one in validated if one.entry.origin not in known]
        return found | await self._enter(await self._validate(others))

    async def _enter_divided(
        self, validated: Sequence[_Validated], error: Refused
    ) -> dict[Origin, tuple[LedgerEntry, Entered]]:
        """Enter the records in halves, in their order: a reader goes on after its last one."""
        if len(validated) > 1:
            found: dict[Origin, tuple[LedgerEntry, Entered]] = {}
            records = sorted((one.record for one in validated), key=_place)
            middle = len(records) // 2
            for half in (records[:middle], records[middle:]):
                found |= await self._enter(await self._validate(half))
            return found
        (one,) = validated
        if one.entry.event.type == TriggerRejected.TYPE:
            raise error
        rejection = await self._factory.rejection(one.record, error)
        return await self._enter([_Validated(one.record, rejection)])
