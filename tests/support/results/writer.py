"""A worker's way of keeping results, in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from streams.app import open_copies, open_log, open_payloads, open_pool
from streams.clock import SystemClock
from streams.kafka.work.item import WorkItem
from streams.playbook.result_policy import ResultPolicy
from streams.settings import Settings
from streams.worker.attempt.result_writer import ResultWriter
from tests.support.log.databases import dsn


def value_of(kind: str) -> dict[str, Any]:
    """Return the result that the writer keeps in a store: the event's is small enough for it."""
    return {"kind": kind, "rows": ["ä" * 100] * (20 if kind == "eventlog" else 1000)}


def write(settings: Settings, folder: Path, execution_id: int, kinds: list[str]) -> None:
    """Keep one result for each kind, and print their references."""
    sys.stdout.write(
        orjson.dumps(asyncio.run(_write(settings, folder, execution_id, kinds))).decode()
    )
    sys.stdout.flush()


async def _write(
    settings: Settings, folder: Path, execution_id: int, kinds: list[str]
) -> dict[str, Any]:
    item = WorkItem(
        kind="command",
        tenant_id="acme",
        organization_id="care",
        execution_id=execution_id,
        entity_id=execution_id + 1,
        attempt=1,
        version=1,
        step="load",
        pool="default",
        catalog_id=9,
        catalog_version=1,
    )
    async with (
        open_log(settings, role="test") as log,
        open_pool(dsn(settings, "append")) as pool,
        open_payloads(settings) as payloads,
        open_copies(settings, pool, folder) as copies,
    ):
        writer = ResultWriter(item, payloads, copies, log.store, SystemClock(), _once)
        kept = {
            kind: await writer.store(kind, ResultPolicy(kind=kind), value_of(kind), "")
            for kind in kinds
        }
        await writer.publish()
    return {kind: one.reference and one.reference.fields for kind, one in kept.items()}


async def _once(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()
