"""One attempt from its claim to its end: kept while its lease lasts, handed back if cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from streams.kafka.work.item import WorkItem
from streams.worker.attempt.lease import AttemptLease, LeaseLost
from streams.worker.attempt.secrets import holding
from streams.worker.options import Options, WorkerPorts

_log = logging.getLogger(__name__)


async def run_claimed(
    item: WorkItem,
    ports: WorkerPorts,
    options: Options,
    attempt: Callable[[AttemptLease], Awaitable[None]],
) -> None:
    """Claim the work item and run `attempt`; drop an item that another worker holds, or that ended.

    When cancelled, it hands the item back.
    """
    lease, began = AttemptLease(item, ports, options), ports.clock.monotonic()
    is_won = await lease.claim()
    ports.counts.claim(item.kind, ports.clock.monotonic() - began, is_won=is_won)
    if not is_won:
        return
    try:
        async with lease:
            with holding(item, options.name, lambda: lease.expires_at):
                await attempt(lease)
    except LeaseLost as lost:
        _log.info("%s %s: attempt %s dropped: %s", item.kind, item.entity_id, item.attempt, lost)
        await lease.return_expired()
    except asyncio.CancelledError:
        await lease.hand_back()
        raise
