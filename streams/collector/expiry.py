"""Ending results: those past their time, and those whose step, execution or workflow is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from streams.collector.core import Due, Holding, due
from streams.collector.port import Ports
from streams.envelope.model import NewEvent, Root

_AT_ONCE = 100


async def find_due(
    ports: Ports, *, grace: timedelta, retention: timedelta | None
) -> tuple[list[Due], datetime]:
    """Return the references that have come to their end, and the time that was judged by."""
    async with ports.ledger.snapshot() as snapshot:
        holdings = [
            holding
            async for holding in snapshot.holdings()
            if holding.results or retention is not None
        ]
        inside = {
            holding.root.id
            for holding in holdings
            if any(result.scope == "workflow" for result in holding.results)
        }
        ended = await snapshot.workflows_ended(inside)
        now = snapshot.now
    found = [one for holding in holdings for one in _due(holding, now, grace, ended, retention)]
    return found, now


def _due(
    holding: Holding,
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


async def expire(ports: Ports, found: Sequence[Due], now: datetime) -> None:
    """Append the ends; one that was appended before is not appended again."""
    for at in range(0, len(found), _AT_ONCE):
        await ports.log.append([_event(one, now) for one in found[at : at + _AT_ONCE]])


def counts(found: Sequence[Due]) -> dict[str, int]:
    """Count the ends by their reason."""
    return dict(sorted(Counter(one.reason for one in found).items()))


def _event(one: Due, now: datetime) -> NewEvent:
    return NewEvent(
        type="result.expired",
        root=Root("execution", one.root.id),
        tenant_id=one.root.tenant_id,
        organization_id=one.root.organization_id,
        idempotency_key=f"result.expired/{one.result_id}",
        event_time=now,
        meta={"result_id": str(one.result_id), "reason": one.reason},
    )
