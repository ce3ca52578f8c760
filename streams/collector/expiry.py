"""Expiry of results past their TTL, or whose step, execution or workflow has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from streams.collector.core import Due, RootHolding, depends_on_workflow, due
from streams.collector.port import CollectorPorts, Snapshot
from streams.events.model import NewEvent, Root
from streams.events.types import ResultExpired
from streams.log.errors import IdempotencyConflict

_BATCH = 100


async def find_due(
    ports: CollectorPorts, *, grace: timedelta, retention: timedelta | None
) -> tuple[list[Due], datetime]:
    """Return the references that are due to expire, and the time they were compared with."""
    async with ports.ledger.snapshot() as snapshot:
        return await _found(snapshot, None, grace, retention), snapshot.now


async def find_due_soon(ports: CollectorPorts, *, grace: timedelta) -> tuple[list[Due], datetime]:
    """Return the same from projected results, without scanning the log."""
    async with ports.ledger.snapshot() as snapshot:
        some = await snapshot.perhaps_due(grace)
        found = await _found(snapshot, some, grace, None) if some else []
        return found, snapshot.now


async def _found(
    snapshot: Snapshot,
    execution_ids: Collection[int] | None,
    grace: timedelta,
    retention: timedelta | None,
) -> list[Due]:
    holdings = [
        holding
        async for holding in snapshot.holdings(execution_ids)
        if holding.results or retention is not None
    ]
    inside = {
        holding.root.id
        for holding in holdings
        if depends_on_workflow(holding, now=snapshot.now, retention=retention)
    }
    ended = await snapshot.workflows_ended(inside)
    return [one for each in holdings for one in _due(each, snapshot.now, grace, ended, retention)]


def _due(
    holding: RootHolding,
    now: datetime,
    grace: timedelta,
    ended: Mapping[int, datetime],
    retention: timedelta | None,
) -> list[Due]:
    return due(
        holding,
        now=now,
        grace=grace,
        workflow_ended_at=ended.get(holding.root.id),
        retention=retention,
    )


async def expire(ports: CollectorPorts, found: Sequence[Due], now: datetime) -> list[Due]:
    """Append the expiries and return them; idempotent.

    Results that were expired concurrently, for another reason, are omitted.
    """
    ended: list[Due] = []
    for at in range(0, len(found), _BATCH):
        some = found[at : at + _BATCH]
        try:
            await ports.log.append([_event(one, now) for one in some])
            ended += some
        except IdempotencyConflict:
            for one in some:
                with suppress(IdempotencyConflict):
                    await ports.log.append([_event(one, now)])
                    ended.append(one)
    return ended


def by_root(found: Sequence[Due]) -> dict[int, set[int]]:
    """Return the ids of expired results by root."""
    ids: dict[int, set[int]] = {}
    for one in found:
        ids.setdefault(one.root.id, set()).add(one.result_id)
    return ids


def counts(found: Sequence[Due]) -> dict[str, int]:
    """Count expiries by reason."""
    return dict(sorted(Counter(one.reason for one in found).items()))


def _event(one: Due, now: datetime) -> NewEvent:
    return NewEvent(
        root=Root("execution", one.root.id),
        tenant_id=one.root.tenant_id,
        organization_id=one.root.organization_id,
        idempotency_key=f"result.expired/{one.result_id}",
        event_time=now,
        causation_id=one.cause_id,
        **ResultExpired(result_id=one.result_id, reason=one.reason).columns(),
    )
