"""Appends at random: `python -m tests.support.events.random_appends`, its task on standard input.

Tasks and reports are JSON. Unconditional appends must always be taken; those that expect a
version may lose against somebody else, and only in that way.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field

import orjson

from streams.clock import SystemClock
from streams.events.model import NewEvent
from streams.ids import FixedWorkerId, Snowflakes
from streams.log.appender import Appender
from streams.log.errors import VersionConflict
from tests.support.events.examples import PRODUCER, codec
from tests.support.log.databases import event


@dataclass(frozen=True, slots=True)
class Task:
    """How much to append, where, and with which luck."""

    dsn: str
    roots: list[int]
    appends: int
    worker: int
    callers: int = 64


@dataclass(slots=True)
class Report:
    """What was acknowledged: (root, seq, event id) of each event, and how appends ended."""

    events: list[tuple[int, int, int]] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)


async def run(task: Task) -> Report:
    """Append as the task says."""
    rng, report = random.Random(task.worker), Report()
    ids = Snowflakes(SystemClock(), FixedWorkerId(task.worker))
    left = iter(range(task.appends))
    async with Appender(task.dsn, codec=codec(), take_ids=ids.take, producer=PRODUCER) as appender:
        callers = [_caller(appender, task, left, rng, report) for _ in range(task.callers)]
        await asyncio.gather(*callers)
    return report


async def _caller(
    appender: Appender, task: Task, left: object, rng: random.Random, report: Report
) -> None:
    for number in left:  # type: ignore[attr-defined]
        batch = _batch(task, number, rng)
        try:
            receipt = await appender.append(batch)
        except VersionConflict:
            conditional = any(one.expected_version is not None for one in batch)
            report.ended["lost" if conditional else "refused"] += 1
            continue
        except Exception as error:  # noqa: BLE001 - whatever it was, the test must see it
            report.ended[f"{type(error).__name__}: {error}"] += 1
            continue
        if not receipt.won:
            report.ended["claimed by another"] += 1
            continue
        report.ended["appended"] += 1
        for one, given in zip(batch, receipt.events, strict=True):
            report.events.append((one.root.id, given.seq, given.event_id))


def _batch(task: Task, number: int, rng: random.Random) -> list[NewEvent]:
    """Return one to three events of one to three roots, some with a condition or a claim."""
    luck = rng.random()
    batch = []
    for at in range(rng.choice((1, 1, 1, 2, 3))):
        key = f"{task.worker}/{number}/{at}"
        small = {"payload_ref": None, "context": None, "node_name": f"n{number % 7}"}
        batch.append(event(rng.choice(task.roots), idempotency_key=key, **small))
    root = rng.choice(task.roots)
    key = f"{task.worker}/{number}/special"
    if luck < 0.02:
        batch.append(event(root, idempotency_key=key, node_name="cas", expected_version=number % 9))
    elif luck < 0.04:
        claim = {"loop_id": str(number % 50 + 1)}
        batch.append(event(root, "loop.done", idempotency_key=key, meta=claim))
    return batch


async def start(task: Task) -> asyncio.subprocess.Process:
    """Start a process that does `task`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.events.random_appends",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(orjson.dumps(asdict(task)))
    process.stdin.write_eof()
    return process


async def report_of(process: asyncio.subprocess.Process) -> Report:
    """Wait for a process to end and return what it reported."""
    assert process.stdout is not None
    said = orjson.loads(await process.stdout.read())
    assert await process.wait() == 0
    return Report([tuple(one) for one in said["events"]], Counter(said["ended"]))


if __name__ == "__main__":
    done = asyncio.run(run(Task(**orjson.loads(sys.stdin.buffer.read()))))
    sys.stdout.buffer.write(orjson.dumps(done))
