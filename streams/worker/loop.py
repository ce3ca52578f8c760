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
from streams.worker.fair_queue import FairQueue
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
    waiting_calls: int = 0
    """How many of its calls are only waiting."""

    @property
    def key(self) -> _Key:
        return self.item.entity_id, self.item.attempt, self.item.version


class Worker:
    """Runs the work items of its feed.

    An item redelivered while it runs is acknowledged with the first delivery; one redelivered
    after its end is acknowledged at once. A queued item is not claimed, so after a crash any
    other worker may take it.
    """

    def __init__(self, feed: Feed, ports: WorkerPorts, options: Options) -> None:
        self._feed, self._ports, self._options = feed, ports, options
        self._frames, self._commands = FrameRunner(ports, options), CommandRunner(ports, options)
        self._jobs: dict[_Key, _Job] = {}
        self._queue: FairQueue[_Job] = FairQueue(options.slots)
        self._ended: FIFOCache[_Key, None] = FIFOCache(REMEMBERED)
        self._failure: BaseException | None = None
        self._is_stopping = False

    async def take(self, batch: Mapping[TopicPartition, list[Record]]) -> None:
        """Start the items of a batch without waiting for them.

        Raises the error of an item that failed unexpectedly.
        """
        self.check()
        for records in batch.values():
            for record in records:
                await self._take(record)
        self._begin()

    def check(self) -> None:
        """Raise the error of an item that failed unexpectedly, if any."""
        if self._failure is not None:
            raise self._failure

    @property
    def is_busy(self) -> bool:
        """Return whether any item is running."""
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
            self._queue.add(job, item.stage_id, _at_once(item))

    def _begin(self) -> None:
        """Start queued items, within the slots and each stage's own limit."""
        if self._is_stopping or self._failure is not None:
            return
        while (job := self._queue.begin()) is not None:
            job.task = asyncio.ensure_future(self._work(job))

    async def _work(self, job: _Job) -> None:
        runner = self._frames if job.item.kind == "frame" else self._commands
        try:
            await runner.run(job.item, lambda: self._released_slot(job))
        except asyncio.CancelledError:
            # Not acknowledged: redelivery is harmless, whether it was handed back or not.
            self._queue.end(job.item.stage_id)
            raise
        except BaseException as error:  # noqa: BLE001 - the process must end, not this task only
            self._queue.end(job.item.stage_id)
            self._failure = self._failure or error
        else:
            self._queue.end(job.item.stage_id)
            self._close(job)
            self._begin()

    @contextmanager
    def _released_slot(self, job: _Job) -> Iterator[None]:
        """Release the slot of a job that waits, perhaps for other items.

        Its records are acknowledged: the job is claimed, so after a crash its lease brings it
        back; and a feed buffers only so many records behind an unacknowledged one, among them
        what the job waits for.
        """
        job.waiting_calls += 1
        if job.waiting_calls == 1:
            self._queue.release_slot()
            self._feed.acknowledge(job.records)
            job.records.clear()
            self._begin()
        try:
            yield
        finally:
            job.waiting_calls -= 1
            if not job.waiting_calls:
                self._queue.retake_slot()

    def _close(self, job: _Job) -> None:
        """Acknowledge and forget an item: the log has its outcome."""
        self._feed.acknowledge(job.records)
        self._jobs.pop(job.key, None)
        self._ended[job.key] = None

    async def stop(self) -> None:
        """Finish within the grace period; hand back the items that do not."""
        self._is_stopping = True
        self._queue.clear()
        tasks = {job.task for job in self._jobs.values() if job.task is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._options.grace_s)
        for task in late:
            task.cancel()
        if late:
            _log.info("%s: handing back %d items", self._options.name, len(late))
            await asyncio.wait(late)


def _at_once(item: WorkItem) -> int:
    """Return how many frames of the item's stage one worker runs at once."""
    if item.kind == "command":
        return _UNBOUNDED
    return int((item.policy or {}).get("parallelism") or 1)
