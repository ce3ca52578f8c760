"""The interpreter of a subscription's records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from streams.catalog.subscription_state import SubscriptionState
from streams.events.model import Json
from streams.kafka.feed.port import Record
from streams.subscription.directives import UnusableMessage
from streams.subscription.interpret import Interpreted, MessageReader
from streams.subscription.message import batch_workload_of, workload_of
from streams.subscription.model import DispatchUnit, Subscription
from streams.trigger.interpreter import Asked
from streams.trigger.record import Request

_Read = tuple[Record, Interpreted]


def request_of(
    state: SubscriptionState,
    subscription: Subscription,
    found: Interpreted,
    workload: dict[str, Json] | None = None,
) -> Request:
    """Return the execution that a message asks for; `workload` is that of a batch."""
    return Request(
        path=found.playbook(subscription),
        tenant=state.scope.tenant_id,
        organization=state.scope.organization_id,
        workload=workload or workload_of(subscription, found.message, found.values),
        key=found.key,
        window_s=None if found.key is None else subscription.dedup_s,
        pool=found.pool(subscription),
        subscription=state.path,
        trace=found.trace,
    )


class SubscriptionRecords:
    """Interprets the records of one subscription, alone or in batches."""

    def __init__(
        self, state: SubscriptionState, subscription: Subscription, reader: MessageReader
    ) -> None:
        self._state, self._subscription, self._reader = state, subscription, reader

    async def interpret(self, records: Sequence[Record]) -> Sequence[Asked]:
        """Return one request for each record, or for each run of records of a batch."""
        asked: list[Asked] = []
        usable: list[_Read] = []
        for record in records:
            try:
                usable.append((record, await self._reader.record(record)))
            except UnusableMessage as error:
                asked.append(Asked((record,), error))
        if self._subscription.dispatch.unit is DispatchUnit.BATCH:
            return [*asked, *self._batches(usable)]
        return [*asked, *(self._alone(record, found) for record, found in usable)]

    def _alone(self, record: Record, found: Interpreted) -> Asked:
        return Asked((record,), request_of(self._state, self._subscription, found))

    def _batches(self, usable: Sequence[_Read]) -> list[Asked]:
        """Group records by playbook and pool, in order; a partition is never mixed."""

        def target(one: _Read) -> tuple[int, str, str | None]:
            record, found = one
            subscription = self._subscription
            partition = record.topic_partition.partition
            return partition, found.playbook(subscription), found.pool(subscription)

        made = []
        for _, group in groupby(usable, key=target):
            run = list(group)
            messages = [found.message for _, found in run]
            workload = batch_workload_of(self._subscription, messages)
            request = request_of(self._state, self._subscription, run[0][1], workload)
            made.append(Asked(tuple(record for record, _ in run), request))
        return made
