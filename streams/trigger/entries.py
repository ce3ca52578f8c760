"""Ledger entries of records: first events of executions, and rejections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streams.clock import Clock
from streams.events.catalogue import catalogue
from streams.events.model import NewEvent
from streams.events.rules import check
from streams.kafka.feed.port import Record
from streams.payload.port import JSON, PayloadStore, Scope
from streams.results.oversized_events import spill_event
from streams.trigger.core import initialized, record_bytes, rejected
from streams.trigger.port import LedgerEntry, Origin, PlaybookVersion, PlaybookVersions, TopicIds
from streams.trigger.record import BadTrigger, Request

KnownPlaybooks = dict[tuple[Scope, str, int | None], PlaybookVersion | None]
"""Playbooks that were looked up for the records of one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPorts:
    """Dependencies of the factory."""

    playbooks: PlaybookVersions
    topic_ids: TopicIds
    payloads: PayloadStore
    take_ids: Callable[[int], Sequence[int]]
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderIdentity:
    """Whose records these are: the trigger topic's, or a subscription's."""

    scope: Scope
    """The owner of records that name none, and of rejected ones."""
    reader: str = ""
    """The reader in the ledger."""
    subscription: str | None = None

    @property
    def kind(self) -> str:
        """The kind of its dead letters."""
        return "trigger" if self.subscription is None else "subscription"


class EntryFactory:
    """Makes the entries of one reader's records."""

    def __init__(self, ports: EntryPorts, identity: ReaderIdentity, *, inline_bytes: int) -> None:
        self._ports, self._identity, self._inline_bytes = ports, identity, inline_bytes

    async def origin(self, record: Record) -> Origin:
        """Return the position of a record for this reader."""
        source = record.topic_partition
        topic_id = await self._ports.topic_ids.topic_id(source.topic)
        reader = self._identity.reader
        return Origin(topic_id, source.partition, record.offset, source.topic, reader)

    async def first_event(
        self, request: Request, origin: Origin, known: KnownPlaybooks
    ) -> NewEvent:
        """Return the first event of the execution that a record asks for.

        Raises:
            BadTrigger: the playbook is not registered.
            BadEvent: the event breaks a rule of its type.
            Unavailable: a dependency is down; retrying is safe.
        """
        scope = Scope(request.tenant, request.organization)
        wanted = (scope, request.path, request.version)
        if wanted not in known:
            known[wanted] = await self._ports.playbooks.find(*wanted)
        playbook = known[wanted]
        if playbook is None:
            which = "" if request.version is None else f" with version {request.version}"
            why = f"path: no playbook {request.path}{which} is registered"
            raise BadTrigger((why,), tenant=scope.tenant_id, organization=scope.organization_id)
        (execution_id,) = self._ports.take_ids(1)
        now = self._ports.clock.now()
        event = initialized(request, playbook, origin, execution_id=execution_id, now=now)
        event = await spill_event(self._ports.payloads, event, self._inline_bytes)
        check(event, catalogue())
        return event

    async def rejection(self, record: Record, error: Exception) -> LedgerEntry:
        """Return the entry of a record that cannot start an execution, with the record."""
        scope, origin = self._identity.scope, await self.origin(record)
        if isinstance(error, BadTrigger):
            scope = Scope(error.tenant, error.organization)
        reference = await self._ports.payloads.put(scope, record_bytes(record), media_type=JSON)
        (trigger_id,) = self._ports.take_ids(1)
        event = rejected(
            origin,
            str(error),
            tenant=scope.tenant_id,
            organization=scope.organization_id,
            trigger_id=trigger_id,
            now=self._ports.clock.now(),
            record_ref=reference,
            subscription=self._identity.subscription,
        )
        return LedgerEntry(origin, event)
