"""Comparison of started executions with the committed records of a subscribed topic."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import orjson

from streams.errors import Unavailable

RECONCILE_S, CAUGHT_UP_S = 300.0, 30.0
STARTS = """
SELECT (context->'workload'->>'number')::bigint AS number,
       (context->'workload'->>'aborted')::boolean AS aborted
FROM noetl.event
WHERE event_type = 'playbook.initialized'
  AND context->'workload'->'message'->'metadata'->>'topic' = $1"""
REJECTED = """
SELECT count(*) FROM noetl.trigger_ledger WHERE topic_id = $1 AND rejected_id IS NOT NULL"""


class NotReconciled(Unavailable):
    """`streams triggers reconcile` gave no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedCheck:
    """Counts of the comparison; the executions are those in the log, not in the ledger."""

    records: int
    started: int
    lost: int
    doubled: int
    aborted_started: int
    rejected: int
    reconcile_exit: int
    lag: int

    def faults(self) -> Iterator[str]:
        """Yield what must not be."""
        if self.lost:
            yield f"{self.lost} committed records started no execution"
        if self.doubled:
            yield f"{self.doubled} executions are second ones of their record"
        if self.aborted_started:
            yield f"{self.aborted_started} aborted records started an execution"
        if self.rejected:
            yield f"{self.rejected} records are dead letters"
        if self.reconcile_exit:
            yield f"`streams triggers reconcile` ended with {self.reconcile_exit}"
        if self.lag:
            yield f"the group has a lag of {self.lag}"


async def check_started(
    dsn: str, data: Path, topic: str, topic_id: str, numbers: Sequence[int]
) -> StartedCheck:
    """Compare; `numbers` are those of the committed records.

    Raises:
        NotReconciled: the ledger cannot be compared with the topic.
    """
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(STARTS, topic)
        rejected = await connection.fetchval(REJECTED, topic_id)
    finally:
        await connection.close()
    started = Counter(row["number"] for row in rows)
    reconcile_exit, lag = await _caught_up(data, topic)
    return StartedCheck(
        records=len(numbers),
        started=len(rows),
        lost=len(set(numbers) - set(started)),
        doubled=sum(started.values()) - len(started),
        aborted_started=sum(1 for row in rows if row["aborted"]),
        rejected=int(rejected),
        reconcile_exit=reconcile_exit,
        lag=lag,
    )


async def _caught_up(data: Path, topic: str) -> tuple[int, int]:
    """Run `streams triggers reconcile` until the group's lag is 0, or for a while."""
    deadline = asyncio.get_running_loop().time() + CAUGHT_UP_S
    while True:
        exit_code, lag = await _reconcile(data, topic)
        if not lag or asyncio.get_running_loop().time() > deadline:
            return exit_code, lag
        await asyncio.sleep(1)


async def _reconcile(data: Path, topic: str) -> tuple[int, int]:
    """Return the exit code of the command, and the lag of the topic's group."""
    command = (sys.executable, "-m", "streams", "triggers", "reconcile", "--json", "--data")
    process = await asyncio.create_subprocess_exec(
        *command, str(data), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(RECONCILE_S):
        out, problems = await process.communicate()
    try:
        rows = orjson.loads(out)["subscriptions"]
        (sides,) = [row["partitions"] for row in rows if row.get("topic") == topic]
    except (ValueError, KeyError) as error:
        raise NotReconciled(
            f"`streams triggers reconcile` did not compare {topic}: {problems.decode()[-500:]}"
        ) from error
    assert process.returncode is not None
    return process.returncode, sum(side["end"] - (side["committed"] or 0) for side in sides)
