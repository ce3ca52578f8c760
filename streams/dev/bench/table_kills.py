"""A table's exactness: records are counted by key while the counting process is killed.

The records are written in transactions, some of which are aborted. The process is killed three
times (SIGKILL), and its disk is deleted once. Afterwards the table is rebuilt from its changelog
and compared with what another driver reads from the topic.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

from streams.dev.bench.table_child import Child, child
from streams.dev.bench.table_options import PARTITIONS, TableProcessOptions
from streams.dev.bench.table_process import COUNTED_KEYS
from streams.dev.bench.table_topics import uncommitted
from streams.dev.bench.transactional_load import TransactionalLoad

KILLS, WIPED_AFTER = 3, 2
NO_SCHEMA = 0
POLL_S, FINISHED_S = 0.5, 300.0


@dataclass(frozen=True, slots=True)
class CountCheck:
    """The rows of a table compared with the committed records of its topic."""

    records: int
    aborted: int
    lost: int
    doubled: int
    wrong_keys: int
    """Keys with another count or another sum of numbers."""


class CountingRun:
    """Records handled so far, over all lives of the counting process."""

    def __init__(self, options: TableProcessOptions, records: int) -> None:
        self._options = options
        self.load = TransactionalLoad(
            options.bootstrap, options.topic, NO_SCHEMA, records, PARTITIONS
        )
        self._earlier, self._current = 0, 0
        self._window = max(10 * self.load.size, records // 10)

    async def run(self, say: Callable[[str], None]) -> CountCheck:
        """Write, count, kill, and compare."""
        writing = asyncio.create_task(asyncio.to_thread(self.load.run, self._room))
        try:
            for number in range(1, KILLS + 1):
                await self._killed_at(self.load.records * number // (KILLS + 1))
                if number == WIPED_AFTER:
                    self._wipe()
                say(f"counting process killed {number} of {KILLS} times")
            async with child(self._options) as last:
                await self._until_finished(last, writing)
        finally:
            self.load.stop.set()
            with suppress(Exception):
                await writing
        self._wipe()
        async with child(replace(self._options, mode="contents")) as rebuilt:
            await rebuilt.until(lambda one: one.rows is not None, "read")
        numbers = await asyncio.to_thread(self.load.committed_numbers)
        return compare(numbers, rebuilt.rows or {}, aborted=self.load.counts.aborted)

    def _room(self) -> int:
        return self._window - (self.load.counts.committed - self._earlier - self._current)

    def _has_handled(self, one: Child, wanted: int) -> bool:
        self._current = one.handled
        return one.ready_s is not None and self._earlier + one.handled >= wanted

    async def _killed_at(self, mark: int) -> None:
        async with child(self._options) as life:
            await life.until(lambda one: self._has_handled(one, mark), f"at {mark} records")
            await life.kill()
        self._earlier, self._current = self._earlier + life.handled, 0

    async def _until_finished(self, last: Child, writing: asyncio.Future[None]) -> None:
        """Wait until all is written, and the group has committed all of it."""
        options = self._options
        async with asyncio.timeout(FINISHED_S):
            for _ in count():
                self._has_handled(last, 0)
                if writing.done():
                    writing.result()
                    if not await uncommitted(options.bootstrap, options.group, options.topic):
                        return
                await asyncio.sleep(POLL_S)

    def _wipe(self) -> None:
        shutil.rmtree(self._options.folder)


def compare(
    numbers: Iterable[int], rows: Mapping[str, Sequence[int]], *, aborted: int = 0
) -> CountCheck:
    """Compare rows of count and sum with the numbers of committed records."""
    counts, sums = Counter[str](), Counter[str]()
    for number in numbers:
        key = str(number % COUNTED_KEYS)
        counts[key] += 1
        sums[key] += number
    lost = doubled = wrong = 0
    for key in counts.keys() | rows.keys():
        count_found, sum_found = rows.get(key, (0, 0))
        lost += max(0, counts[key] - count_found)
        doubled += max(0, count_found - counts[key])
        wrong += (count_found, sum_found) != (counts[key], sums[key])
    return CountCheck(counts.total(), aborted, lost, doubled, wrong)
