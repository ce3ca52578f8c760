"""A process that replays one execution, and reports its time and its peak memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import orjson

from streams.app.log import open_pool
from streams.clock import SystemClock
from streams.dev.bench.payload_process import peak_bytes
from streams.events.codec import Codec, event_schema
from streams.payload.port import Scope
from streams.replay.postgres import PostgresStoredLog
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from streams.resources import folder
from streams.roles.allocator import collect_rarely
from streams.schema.registry import FileRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTask:
    """What to replay, and from where; `dsn` has a password, so it is passed by standard input."""

    dsn: str
    limit_s: float
    schema_id: int
    tenant_id: str
    organization_id: str
    execution_id: int
    use_snapshots: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTime:
    """The result of one replay."""

    seconds: float
    cpu_s: float
    seq: int
    events_read: int
    checksum: str
    peak_rss_mb: float


def replay_apart(task: ReplayTask) -> ReplayTime:
    """Replay in a process of its own, because a process's peak never decreases."""
    command = [sys.executable, "-m", "streams.dev.bench.replay_process"]
    done = subprocess.run(
        command, input=orjson.dumps(asdict(task)), capture_output=True, check=False
    )
    if done.returncode != 0:
        raise ValueError(f"the replay exited with {done.returncode}: {done.stderr.decode()[-500:]}")
    return ReplayTime(**orjson.loads(done.stdout))


async def replay(task: ReplayTask) -> ReplayTime:
    """Replay an execution to its last event."""
    codec = Codec(task.schema_id, event_schema(), FileRegistry(folder("avro_schemas")))
    async with open_pool(task.dsn, limit_s=task.limit_s) as pool:
        log = PostgresStoredLog(pool)
        replaying = Replay(log, VerifiedLog(log, codec), SystemClock())
        scope = Scope(task.tenant_id, task.organization_id)
        began, used = time.perf_counter(), time.process_time()
        state = await replaying.state(task.execution_id, scope, use_snapshots=task.use_snapshots)
        return ReplayTime(
            seconds=time.perf_counter() - began,
            cpu_s=time.process_time() - used,
            seq=state.as_of.seq,
            events_read=state.events_read,
            checksum=state.checksum_of("all"),
            peak_rss_mb=round(peak_bytes() / 2**20, 1),
        )


def main() -> None:
    """Read a task from standard input, print its result."""
    task = ReplayTask(**orjson.loads(sys.stdin.buffer.read()))
    collect_rarely()
    sys.stdout.write(orjson.dumps(asyncio.run(replay(task))).decode())


if __name__ == "__main__":
    main()
