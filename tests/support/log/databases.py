"""Logs of a test module's own: a fresh database on the shared server, migrated."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import asyncpg

from streams.events.model import Event, NewEvent, Root
from streams.log.port import EventStore, Frontier
from streams.settings import Settings
from tests.support.events.examples import example
from tests.support.waiting import until

_keys = count(1)
_IS_SETTLED = """
SELECT coalesce(max(xid) < pg_snapshot_xmin(pg_current_snapshot()), true) FROM noetl.event"""


def dsn(settings: Settings, duty: str = "owner") -> str:
    """Return how to connect for a duty."""
    return settings.event_store.canonical_connection.dsn(duty)


def event(root_id: int, type: str = "step.enter", **changes: Any) -> NewEvent:
    """Return an event of any type with a key of its own; `meta` is added to the example's."""
    made = example(type)
    meta = {**made.meta, **changes.pop("meta", {})}
    fields = {"idempotency_key": f"key-{next(_keys)}", "meta": meta, **changes}
    return replace(made, root=Root(made.root.type, root_id), **fields)


async def root_events(store: EventStore, root_id: int, **bounds: int) -> list[Event]:
    """Read an execution."""
    return [one async for one in store.read_root(Root("execution", root_id), **bounds)]


async def end_of(store: EventStore) -> Frontier:
    """Read the whole log and return where it ends now."""
    frontier = Frontier()
    while True:
        events, frontier = await store.read_log(frontier)
        if not events:
            return frontier


async def settled(pool: asyncpg.Pool) -> None:
    """Wait until readers of the whole log get all of it.

    A transaction that is open anywhere on the server, in whatever database, holds them up.
    """
    await until(lambda: pool.fetchval(_IS_SETTLED), within_s=90)
