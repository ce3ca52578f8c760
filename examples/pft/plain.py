"""The same fetches and saves as the playbook's, as a plain script: asyncio, aiohttp and COPY.

This is the limit the runtime is measured against: one process, no log, no frames, nothing
kept if it dies. With `--client reqwest` it uses the HTTP client that the runtime's workers use.

Run it with:  .venv/bin/python -m examples.pft.plain --api-url URL --dsn DSN
It prints its figures as one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import aiohttp
import asyncpg
import orjson
from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import NetworkError

from .world import KINDS, PAGES

COLUMNS = (
    *("row_key", "facility_id", "patient_id", "page"),
    *("value", "score", "recorded_on", "mds_id"),
)
TABLE = """CREATE TABLE {schema}.{kind} (
    row_key text NOT NULL, facility_id integer, patient_id integer, page integer,
    value text, score double precision, recorded_on date, mds_id bigint)"""
FLUSH_ROWS = 2_000
TRIES, FIRST_DELAY_S = 8, 0.1
RETRIED = {429, 500, 502, 503, 504}

Get = Callable[[str], Awaitable[tuple[int, Any]]]
"""Asks for a path; returns the status and the body."""


@dataclass(slots=True)
class Rows:
    """Rows waiting to be copied, by table, and how many there were."""

    pool: asyncpg.Pool
    schema: str
    waiting: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    saved: int = 0
    requests: int = 0
    retries: int = 0

    async def add(self, kind: str, rows: Iterable[dict[str, Any]]) -> None:
        """Keep rows for their table; copy them once there are many."""
        waiting = self.waiting.setdefault(kind, [])
        waiting += [_record(row) for row in rows]
        if len(waiting) >= FLUSH_ROWS:
            await self.flush(kind)

    async def flush(self, kind: str) -> None:
        """Copy what is waiting for a table."""
        rows = self.waiting.pop(kind, [])
        if rows:
            await self.pool.copy_records_to_table(
                kind, schema_name=self.schema, columns=COLUMNS, records=rows
            )
            self.saved += len(rows)


async def run(given: argparse.Namespace) -> dict[str, float]:
    """Fetch every page of every patient, save the rows, and return the figures."""
    client = _aiohttp if given.client == "aiohttp" else _reqwest
    async with _tables(given.dsn, given.schema) as pool, client(given) as get:
        started, cpu = time.perf_counter(), time.process_time()
        rows = Rows(pool, given.schema)
        details: list[int] = []
        for kind in PAGES:
            patients = (
                (facility, patient)
                for facility in range(1, given.facilities + 1)
                for patient in range(1, given.patients + 1)
            )
            await _spread(
                given.concurrency,
                (_pages(get, rows, kind, *patient, details) for patient in patients),
            )
            await rows.flush(kind)
        await _spread(given.concurrency, (_detail(get, rows, number) for number in details))
        await rows.flush("mds_details")
        wall_s = time.perf_counter() - started
        return {
            "requests": rows.requests,
            "retries": rows.retries,
            "rows": rows.saved,
            "wall_s": round(wall_s, 3),
            "rows_per_s": round(rows.saved / wall_s, 1),
            "cpu_s": round(time.process_time() - cpu, 3),
        }


async def _pages(
    get: Get,
    rows: Rows,
    kind: str,
    facility: int,
    patient: int,
    details: list[int],
) -> None:
    path, page = f"/facilities/{facility}/patients/{patient}/{kind}", 1
    while True:
        body = await _fetch(get, rows, f"{path}?page={page}")
        await rows.add(kind, body["data"])
        if kind == "assessments":
            details += [row["mds_id"] for row in body["data"] if row["mds_id"] is not None]
        if not body["paging"]["hasMore"]:
            return
        page += 1


async def _detail(get: Get, rows: Rows, number: int) -> None:
    body = await _fetch(get, rows, f"/mds/{number}")
    await rows.add("mds_details", [body["data"]])


async def _fetch(get: Get, rows: Rows, path: str) -> Any:
    for attempt in range(TRIES):
        if attempt:
            rows.retries += 1
            await asyncio.sleep(FIRST_DELAY_S * 2 ** (attempt - 1))
        rows.requests += 1
        try:
            status, body = await get(path)
        except (TimeoutError, aiohttp.ClientConnectionError, NetworkError):
            continue
        if status == 200:
            return orjson.loads(body)
        if status not in RETRIED:
            raise RuntimeError(f"{path} answered {status}")
    raise RuntimeError(f"{path}: no answer after {TRIES} tries")


@asynccontextmanager
async def _aiohttp(given: argparse.Namespace) -> AsyncIterator[Get]:
    timeout = aiohttp.ClientTimeout(total=given.timeout_s)
    connector = aiohttp.TCPConnector(limit=given.concurrency)
    async with aiohttp.ClientSession(
        given.api_url, connector=connector, timeout=timeout
    ) as session:

        async def get(path: str) -> tuple[int, bytes]:
            async with session.get(path) as response:
                return response.status, await response.read()

        yield get


@asynccontextmanager
async def _reqwest(given: argparse.Namespace) -> AsyncIterator[Get]:
    timeout = timedelta(seconds=given.timeout_s)
    builder = ClientBuilder().max_connections(given.concurrency).timeout(timeout).no_proxy()
    async with builder.build() as client:

        async def get(path: str) -> tuple[int, Any]:
            response = await client.get(given.api_url + path).build().send()
            return response.status, memoryview(await response.bytes())

        yield get
    await asyncio.sleep(0.1)  # its thread may still touch Python objects


async def _spread(concurrency: int, jobs: Iterable[Any]) -> None:
    """Await all jobs, so many at a time."""
    waiting = iter(jobs)

    async def take() -> None:
        for job in waiting:
            await job

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(take())


@asynccontextmanager
async def _tables(dsn: str, schema: str) -> AsyncIterator[asyncpg.Pool]:
    """Make fresh tables in a schema of our own, and a few connections to fill them."""
    async with asyncpg.create_pool(dsn, min_size=2, max_size=2) as pool:
        await pool.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        for kind in KINDS:
            await pool.execute(TABLE.format(schema=schema, kind=kind))
        yield pool


def _record(row: dict[str, Any]) -> tuple[Any, ...]:
    day = date.fromisoformat(row["recorded_on"])
    return (
        row["row_key"],
        row["facility_id"],
        row["patient_id"],
        row["page"],
        row["value"],
        row["score"],
        day,
        row["mds_id"],
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The PFT workload as a plain script.")
    add = parser.add_argument
    add("--api-url", required=True)
    # Others can read a program's arguments, and a connection string holds a password.
    add("--dsn", default=os.environ.get("PFT_DSN"), help="default: $PFT_DSN")
    add("--schema", default="pft_plain")
    add("--facilities", type=int, default=10)
    add("--patients", type=int, default=200)
    add("--concurrency", type=int, default=32)
    add("--timeout-s", type=float, default=5.0)
    add("--client", choices=("aiohttp", "reqwest"), default="aiohttp")
    return parser.parse_args()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(run(_parse()))) + "\n")
