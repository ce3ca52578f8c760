"""Benchmark of tables and deliveries on our transport, compared with stock Faust.

Measured processes are Python processes of their own. Times of a rebuild are from the start of
the process until its table is recovered; costs are processor time of the measured process.
Stock Faust's changelog has the same rows, written without transactions: it would never get over
the markers of transactions.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from streams.dev.bench.report import BenchReport, Figure
from streams.dev.bench.table_child import OURS, STOCK, child
from streams.dev.bench.table_kills import KILLS, CountCheck, CountingRun
from streams.dev.bench.table_options import PARTITIONS, TABLE, TableProcessOptions, rows_of
from streams.dev.bench.table_takeover import takeover_s
from streams.dev.bench.table_topics import plain_producer, topics, write_plain
from streams.kafka.clients import SESSION_TIMEOUT_MS
from streams.kafka.topic_creation import changelog_topic
from streams.settings import Settings

EVENT = b"e" * 200
LEAST = 2000
SESSION_S = 1.2 * SESSION_TIMEOUT_MS / 1000
FILL_S, STOCK_S = 1200.0, 1800.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured, in proportion to the keys of the table."""

    keys: int

    @property
    def events(self) -> int:
        """Records that our transport delivers."""
        return max(LEAST, 3 * self.keys // 10)

    @property
    def stock_events(self) -> int:
        """Records that stock Faust delivers, which is slow."""
        return max(LEAST, self.keys // 20)

    @property
    def counted(self) -> int:
        """Records that are counted while the process is killed."""
        return max(LEAST, 6 * self.keys // 100)


async def bench_tables(settings: Settings, folder: Path, *, keys: int, say: Say) -> BenchReport:
    """Measure our tables, then stock Faust's."""
    bootstrap = settings.event_store.connection.url
    with tempfile.TemporaryDirectory(prefix="streams-bench-", dir=folder) as temporary:
        run = TableBench(bootstrap, Path(temporary), Sizes(keys), say)
        async with run.topics():
            return await run.measure()


class TableBench:
    """One run: its topics, its folders and the figures found so far."""

    def __init__(self, bootstrap: str, folder: Path, sizes: Sizes, say: Say) -> None:
        self._bootstrap, self._folder = bootstrap, folder
        self._sizes, self._say = sizes, say
        self._tag = f"noetl.bench.{uuid4().hex[:8]}"
        self._figures: dict[str, Figure] = {"keys": sizes.keys}
        self._faults: list[str] = []
        self._is_left_at = 0.0
        """When the sessions of static members, which do not leave their group, have ended."""

    @asynccontextmanager
    async def topics(self) -> AsyncIterator[None]:
        """Create the topics of the run, and delete them."""
        names = [f"{self._tag}.{name}" for name in ("rows", "events", "counted")]
        groups = [f"{self._tag}.{name}" for name in ("rows", "counted", "stock")]
        changelogs = [changelog_topic(group, TABLE) for group in groups]
        async with topics(self._bootstrap, names, compacted=changelogs):
            yield

    async def measure(self) -> BenchReport:
        """Run all measurements; what is compared comes one after the other."""
        await self._fill()
        await self._take_over()
        await self._count()
        await self._receive()
        await self._receive_stock()
        await self._rebuild()
        await self._rebuild_stock()
        return BenchReport(self._figures, tuple(self._faults))

    def _options(self, mode: str, name: str, *, folder: str, count: int = 0) -> TableProcessOptions:
        return TableProcessOptions(
            mode=mode,
            bootstrap=self._bootstrap,
            group=f"{self._tag}.{name}",
            topic=f"{self._tag}.{name}",
            folder=str(self._folder / folder),
            count=count,
        )

    async def _fill(self) -> None:
        self._say(f"writing {self._sizes.keys:,} keys")
        options = self._options("fill", "rows", folder="rows", count=self._sizes.keys)
        async with child(options) as filling:
            found = await filling.result(limit_s=FILL_S)
        if found["missing"]:
            self._faults.append(f"{found['missing']:.0f} keys were not read")
        self._add(put_us=found["put_us"], get_us=found["get_us"])

    async def _rebuild(self) -> None:
        await asyncio.sleep(max(0.0, self._is_left_at - time.monotonic()))
        self._say("rebuilding the table: from the changelog, then from the disk")
        options = self._options("rebuild", "rows", folder="rows")
        shutil.rmtree(options.folder)
        ready_s, cpu_s = await self._ready(options)
        self._add(rebuild_s=ready_s, rebuild_cpu_s=cpu_s)
        self._add(rebuild_disk_s=(await self._ready(options))[0])

    async def _ready(self, options: TableProcessOptions, module: str = OURS) -> tuple[float, float]:
        """Return the time and the processor time from a process's start to its table's recovery."""
        async with child(options, module) as recovering:
            rows = (await recovering.result(limit_s=STOCK_S))["rows"]
        if rows != self._sizes.keys:
            self._faults.append(f"{options.group} has {rows:.0f} of {self._sizes.keys} rows")
        assert recovering.ready_s is not None
        return recovering.ready_s, recovering.ready_cpu_s

    async def _receive(self) -> None:
        self._say(f"delivering {self._sizes.events:,} records")
        topic, count = f"{self._tag}.events", self._sizes.events // PARTITIONS
        async with plain_producer(self._bootstrap) as producer:
            for number in range(PARTITIONS):
                rows = ((None, EVENT) for _ in range(count))
                await write_plain(producer, topic, number, rows)
        options = self._options("receive", "events", folder="events", count=count * PARTITIONS)
        async with child(options) as receiving:
            self._add(batch_us_per_event=(await receiving.result())["us_per_event"])

    async def _count(self) -> None:
        self._say(f"counting {self._sizes.counted:,} records while the process is killed")
        options = self._options("count", "counted", folder="counted")
        found = await CountingRun(options, self._sizes.counted).run(self._say)
        self._figures |= {
            "counted_records": found.records,
            "aborted_records": found.aborted,
            "kills": KILLS,
            "lost": found.lost,
            "doubled": found.doubled,
            "wrong_keys": found.wrong_keys,
        }
        self._faults += faults_of(found, self._sizes.counted)

    async def _take_over(self) -> None:
        options = self._options("serve", "rows", folder="rows")
        for standbys, figure in enumerate(("takeover_s", "takeover_standby_s")):
            self._say(f"killing one of two processes, with {standbys} standbys")
            # Static members of the last round remain until their sessions end: others join.
            first, second = (
                replace(options, instance=f"{name}-{standbys}", standbys=standbys)
                for name in ("first", "second")
            )
            heir = replace(second, folder=f"{options.folder}-{standbys}")
            self._add(**{figure: await takeover_s(first, heir)})
            shutil.rmtree(heir.folder)
        self._is_left_at = time.monotonic() + SESSION_S

    async def _receive_stock(self) -> None:
        """Stock Faust receives a part of the records, in the cheaper of two ways."""
        count, used = self._sizes.stock_events, []
        for mode in ("take", "events"):
            self._say(f"stock Faust: delivering {count:,} records ({mode})")
            options = self._options(mode, "events", folder=f"stock-{mode}", count=count)
            options = replace(options, group=f"{options.group}-stock-{mode}")
            async with child(options, STOCK) as receiving:
                used.append((await receiving.result())["us_per_event"])
        self._add(faust_us_per_event=min(used))

    async def _rebuild_stock(self) -> None:
        self._say("stock Faust: rebuilding the table from the changelog")
        group, keys = f"{self._tag}.stock", self._sizes.keys
        async with plain_producer(self._bootstrap) as producer:
            for number in range(PARTITIONS):
                rows: Iterable[tuple[bytes, bytes]] = rows_of(number, 0, keys).items()
                await write_plain(producer, changelog_topic(group, TABLE), number, rows)
        options = self._options("rebuild", "rows", folder="stock")
        stock_s, cpu_s = await self._ready(replace(options, group=group), STOCK)
        ours_s, ours_cpu_s = self._figures["rebuild_s"], self._figures["rebuild_cpu_s"]
        assert isinstance(ours_s, float)
        assert isinstance(ours_cpu_s, float)
        self._add(faust_rebuild_s=stock_s, faust_rebuild_cpu_s=cpu_s)
        self._add(rebuild_ratio_to_faust=stock_s / ours_s)
        self._add(rebuild_cpu_ratio_to_faust=cpu_s / ours_cpu_s)

    def _add(self, **figures: float) -> None:
        for name, value in figures.items():
            self._figures[name] = round(value, 2)
            self._say(f"{name} {value:.2f}")


def faults_of(found: CountCheck, records: int) -> list[str]:
    """Return what is wrong with a count."""
    faults = [f"{found.lost} records lost"] if found.lost else []
    faults += [f"{found.doubled} records doubled"] if found.doubled else []
    faults += [f"{found.wrong_keys} keys are wrong"] if found.wrong_keys else []
    if found.records < records:
        faults.append(f"the topic has {found.records} committed records, not {records}")
    return faults
