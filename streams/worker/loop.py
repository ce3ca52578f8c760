"""The worker's loop: take work items, run them side by side, acknowledge each at its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from cachetools import FIFOCache

from streams.kafka.feed.port import Feed, Record, TopicPartition
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.frame import FrameRunner
from streams.worker.fair_queue import Waiting
from streams.worker.options import Options, WorkerPorts

REMEMBERED = 10_000
_UNBOUNDED = 1_000_000
_log = logging.getLogger(__name__)

_Key = tuple[int, int, int]


@dataclass(slots=True)
class _Job:
    item: WorkItem
    records: list[Record] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    resting: int = 0
    """How many of its calls only wait."""

    @property
    def key(self) -> _Key:
        return self.item.entity_id, self.item.attempt, self.item.version


class Worker:
    """Runs what its feed brings.

    An item that comes again while it is run shares the fate of the first; one that comes
    again after its end is acknowledged at once. An item that waits for its turn is not
    claimed, so any other worker may still be given it after a crash.
    """

    def __init__(self, feed: Feed, ports: WorkerPorts, options: Options) -> None:
        self._feed, self._ports, self._options = feed, ports, options
        self._frames, self._commands = FrameRunner(ports, options), CommandRunner(ports, options)
        self._jobs: dict[_Key, _Job] = {}
        self._waiting: Waiting[_Job] = Waiting(options.slots)
        self._ended: FIFOCache[_Key, None] = FIFOCache(REMEMBERED)
        self._failure: BaseException | None = None
        self._is_stopping = False

    async def take(self, batch: Mapping[TopicPartition, list[Record]]) -> None:
        """Begin with the items of a batch; returns before they have ended.

        Raises the error of an item that ended in a way nobody expected.
        """
        self.check()
        for records in batch.values():
            for record in records:
                await self._take(record)
        self._begin()

    def check(self) -> None:
        """Raise the error of an item that ended in a way nobody expected, if one did."""
        if self._failure is not None:
            raise self._failure

    @property
    def is_busy(self) -> bool:
        """Say whether something is under way, however long it takes."""
        return any(job.task is not None for job in self._jobs.values())

    async def _take(self, record: Record) -> None:
        try:
            item = WorkItem.decode(record.value or b"")
        except BadWorkItem as error:
            await self._ports.dead_letters.put(record, str(error), kind="work")
            self._feed.acknowledge([record])
            return
        job = _Job(item, [record])
        if (known := self._jobs.get(job.key)) is not None:
            known.records.append(record)
        elif job.key in self._ended:
            self._feed.acknowledge([record])
        else:
            self._jobs[job.key] = job
            self._waiting.add(job, item.stage_id, _at_once(item))

    def _begin(self) -> None:
        """Start what may start: within the slots, and within its stage's own bound."""
        if self._is_stopping or self._failure is not None:
            return
        while (job := self._waiting.begin()) is not None:
            job.task = asyncio.ensure_future(self._work(job))

    async def _work(self, job: _Job) -> None:
        runner = self._frames if job.item.kind == "frame" else self._commands
        try:
            await runner.run(job.item, lambda: self._aside(job))
        except asyncio.CancelledError:
            # Not acknowledged: whether it was handed back or not, coming again is harmless.
            self._waiting.end(job.item.stage_id)
            raise
        except BaseException as error:  # noqa: BLE001 - the process must end, not this task only
            self._waiting.end(job.item.stage_id)
            self._failure = self._failure or error
        else:
            self._waiting.end(job.item.stage_id)
            self._close(job)
            self._begin()

    @contextmanager
    def _aside(self, job: _Job) -> Iterator[None]:
        """Let others have the slot of a job that waits for them, perhaps.

        Its records are acknowledged: the job is claimed, so its lease, not the feed, brings
        it back should this process die; and a feed holds only so many records behind one
        that is not acknowledged, among them what the job waits for.
        """
        job.resting += 1
        if job.resting == 1:
            self._waiting.rest()
            self._feed.acknowledge(job.records)
            job.records.clear()
            self._begin()
        try:
            yield
        finally:
            job.resting -= 1
            if not job.resting:
                self._waiting.resume()

    def _close(self, job: _Job) -> None:
        """Let go of an item: the log says all there is to say about it."""
        self._feed.acknowledge(job.records)
        self._jobs.pop(job.key, None)
        self._ended[job.key] = None

    async def stop(self) -> None:
        """Finish within the grace period; hand back what does not."""
        self._is_stopping = True
        self._waiting.clear()
        tasks = {job.task for job in self._jobs.values() if job.task is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._options.grace_s)
        for task in late:
            task.cancel()
        if late:
            _log.info("%s: hands back %d items", self._options.name, len(late))
            await asyncio.wait(late)


def _at_once(item: WorkItem) -> int:
    """Return how many frames of the item's stage one worker runs at once."""
    if item.kind == "command":
        return _UNBOUNDED
    return int((item.policy or {}).get("parallelism") or 1)
