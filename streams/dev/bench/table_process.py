"""A measured process of the bench of tables: an application on our transport.

`python -m streams.dev.bench.table_process '{"mode": "rebuild", …}'`
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from types import MappingProxyType

import orjson

from streams.dev.bench.table_options import (
    PARTITIONS,
    TABLE,
    TableProcessOptions,
    options_given,
    report,
    report_ready,
    row,
    rows_of,
)
from streams.kafka.feed.agent import FaustProcess
from streams.kafka.feed.port import Record
from streams.kafka.feed.record_suspects import Batch
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.tables.port import PartitionLost
from streams.kafka.transport.app import Membership, application

CHUNK, WRITE, READ, READS = 50_000, 500, 100, 100_000
COUNTED_KEYS = 1000
TICK_S = 0.1


class TableProcess:
    """An application with one table, or none; the base does nothing with its records."""

    tables: Mapping[str, str] = MappingProxyType({TABLE: "rows of the bench"})

    def __init__(
        self, options: TableProcessOptions, *, max_records: int = 500, gather_s: float = 0.0
    ) -> None:
        self.options, self.stop = options, asyncio.Event()
        folder = Path(options.folder)
        folder.mkdir(parents=True, exist_ok=True)
        member = Membership(
            bootstrap=options.bootstrap,
            group=options.group,
            instance=options.instance,
            topics=(options.topic,),
            max_records=max_records,
            folder=folder,
            tables=self.tables,
            standbys=options.standbys,
        )
        self.app = application(member, loop=asyncio.get_running_loop())
        self.process = FaustProcess(self.app, folder)
        self.feed = TopicFeed(self.app, max_records=max_records, gather_s=gather_s)
        self.process.attach(self.feed, self.handle, set_aside=self.set_aside)
        self.process.add_work(self.work)

    async def run(self) -> None:
        """Run until the work is done, or the process is asked to end."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stop.set)
        await self.process.run(self.stop, report_ready)

    async def work(self) -> None:
        """Do what the mode measures, then set `stop`."""
        await self.stop.wait()

    async def handle(self, batch: Batch) -> None:
        """Handle a batch of the topic."""
        self.feed.acknowledge(record for records in batch.values() for record in records)

    async def set_aside(self, record: Record) -> None:
        """Handle a record that was there at three kills like any other."""
        await self.handle({record.topic_partition: [record]})


class Fill(TableProcess):
    """Writes all keys, then reads random ones."""

    async def work(self) -> None:
        """Measure puts and gets."""
        put_s = 0.0
        for start in range(0, self.options.count, CHUNK):
            end = min(self.options.count, start + CHUNK)
            chunk = {one: list(rows_of(one, start, end).items()) for one in range(PARTITIONS)}
            began = process_time()
            await asyncio.gather(*(self._write(one, rows) for one, rows in chunk.items()))
            put_s += process_time() - began
        reads = min(READS, self.options.count)
        wanted = [self._keys(number % PARTITIONS) for number in range(reads // READ)]
        began, missing = process_time(), 0
        for number, keys in enumerate(wanted):
            found = self.app.state_tables.read(number % PARTITIONS, TABLE, keys)
            missing += found.count(None)
        get_s = process_time() - began
        puts, gets = self.options.count / 1e6, len(wanted) * READ / 1e6
        report({"figures": {"put_us": put_s / puts, "get_us": get_s / gets, "missing": missing}})
        self.stop.set()

    async def _write(self, partition: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
        for start in range(0, len(rows), WRITE):
            changes = dict(rows[start : start + WRITE])
            await self.app.state_tables.write(partition, {TABLE: changes})

    def _keys(self, partition: int) -> list[bytes]:
        numbers = range(partition, self.options.count, PARTITIONS)
        return [row(number)[0] for number in random.choices(numbers, k=READ)]  # noqa: S311


class Rebuild(TableProcess):
    """Recovers its table; the parent measures the time until it is ready."""

    async def work(self) -> None:
        """Count the rows."""
        tables = self.app.state_tables
        rows = sum(1 for one in tables.owned for _ in tables.scan(one, TABLE))
        report({"figures": {"rows": rows}})
        self.stop.set()


class Receive(TableProcess):
    """Receives records in batches, and measures the processor time after the first batch."""

    tables = MappingProxyType({})
    first = received = 0
    began = 0.0

    async def handle(self, batch: Batch) -> None:
        """Count and acknowledge records."""
        await super().handle(batch)
        self.received += sum(map(len, batch.values()))
        if not self.first:
            self.first, self.began = self.received, process_time()
        elif self.received >= self.options.count and not self.stop.is_set():
            used_us = 1e6 * (process_time() - self.began)
            report({"figures": {"us_per_event": used_us / (self.received - self.first)}})
            self.stop.set()


class Count(TableProcess):
    """Counts records by key: a row has the count, the sum of numbers, and the last offset."""

    async def handle(self, batch: Batch) -> None:
        """Add records to the rows of their keys; those already counted change nothing."""
        for partition, records in batch.items():
            changes = self._counted(partition.partition, records)
            try:
                await self.app.state_tables.write(partition.partition, {TABLE: changes})
            except PartitionLost:
                return  # not acknowledged: delivered again
            self.feed.acknowledge(records)
        report({"handled": sum(map(len, batch.values()))})

    def _counted(self, partition: int, records: Sequence[Record]) -> dict[bytes, bytes]:
        # Not at the top: the time from the start to ready would include it.
        from streams.dev.bench.transactional_load import number_of

        numbers = [number_of(record.value or b"") for record in records]
        keys = [b"%d" % (number % COUNTED_KEYS) for number in numbers]
        known = sorted(set(keys))
        found = self.app.state_tables.read(partition, TABLE, known)
        rows = {
            key: orjson.loads(value) if value else [0, 0, -1]
            for key, value in zip(known, found, strict=True)
        }
        for key, number, record in zip(keys, numbers, records, strict=True):
            count, total, last = rows[key]
            if record.offset > last:
                rows[key] = [count + 1, total + number, record.offset]
        return {key: orjson.dumps(value) for key, value in rows.items()}


class Contents(TableProcess):
    """Reports the rows of a table that `Count` wrote."""

    async def work(self) -> None:
        """Report count and sum of each key."""
        tables = self.app.state_tables
        found = {
            key.decode(): orjson.loads(value)[:2]
            for one in tables.owned
            for key, value in tables.scan(one, TABLE)
        }
        report({"rows": found})
        self.stop.set()


class Serve(TableProcess):
    """Writes a row for each batch, and reports its partitions."""

    async def work(self) -> None:
        """Report partitions and standbys when they change."""
        before: tuple[list[int], bool] | None = None
        while not self.stop.is_set():
            app, tables = self.app, self.app.state_tables
            is_settled = not app.rebalancing and not app.in_recovery
            owned = sorted(tables.owned) if is_settled else []
            behind = tables.recovery.standby_remaining_total()
            now = owned, is_settled and bool(tables.recovery.standby_tps) and not behind
            if now != before:
                report({"owned": now[0], "standbys_ready": now[1]})
                before = now
            await asyncio.sleep(TICK_S)

    async def handle(self, batch: Batch) -> None:
        """Write a row of the partition, as it was."""
        for partition, records in batch.items():
            change = dict([row(partition.partition)])
            try:
                await self.app.state_tables.write(partition.partition, {TABLE: change})
            except PartitionLost:
                return
            report({"wrote": [partition.partition]})
            self.feed.acknowledge(records)


MODES: dict[str, type[TableProcess]] = {
    "fill": Fill,
    "rebuild": Rebuild,
    "receive": Receive,
    "count": Count,
    "contents": Contents,
    "serve": Serve,
}


async def main(options: TableProcessOptions) -> None:
    """Run one mode."""
    try:
        await MODES[options.mode](options).run()
    except Exception:  # noqa: BLE001 - ends as `streams run` does: Faust's shutdown may hang
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    asyncio.run(main(options_given()))
