"""Faust's tables of bytes on RocksDB, read and written in batches."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import faust
import rocksdict
from faust.stores.rocksdb import Store as FaustStore
from faust.types import TP

from streams.kafka.errors import TablesInUse
from streams.kafka.transport.delivery import FAUST_LOG

_BLOCK_CACHE, _WRITE_BUFFER, _OPEN_FILES = 4 * 2**20, 2 * 2**20, 64
"""Faust's block cache has 2 GB for each partition of each table."""
_TOPIC_KEY = b"__streams\0topic__"
Puts = Iterable[tuple[bytes, bytes | None]]


class Store(FaustStore):
    """RocksDB files of a table; files of another changelog topic are deleted."""

    logger = FAUST_LOG

    def _open_for_partition(self, partition: int) -> Any:
        try:
            return super()._open_for_partition(partition)
        except Exception as error:
            if "LOCK" in str(error):
                raise TablesInUse(self.partition_path(partition)) from error
            raise

    def revoke_partitions(self, table: Any, tps: set[TP]) -> None:
        """Close the files of partitions that another process has now."""
        for one in tps:
            if one.topic in table.changelog_topic.topics:
                self.close_partition(one.partition)

    def close_partition(self, partition: int) -> None:
        """Close the files of a partition, so that they can be opened again."""
        if (database := self._dbs.pop(partition, None)) is not None:
            database.close()

    def belongs_to(self, partition: int, topic_id: str) -> bool:
        """Return whether a partition's files were written with this changelog topic."""
        stored = self._db_for_partition(partition).get(_TOPIC_KEY)
        return bool(stored == topic_id.encode())

    def recreate(self, partition: int, topic_id: str | None = None) -> None:
        """Delete the files of a partition and begin again; by default with the same topic."""
        kept = self._db_for_partition(partition).get(_TOPIC_KEY)
        self.close_partition(partition)
        shutil.rmtree(self.partition_path(partition), ignore_errors=True)
        name = kept if topic_id is None else topic_id.encode()
        self._db_for_partition(partition).put(_TOPIC_KEY, name)

    def apply(self, partition: int, puts: Puts, last_offset: int) -> None:
        """Write values and the changelog's offset in one step."""
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in puts:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(self.offset_key, str(last_offset).encode())
        self._db_for_partition(partition).write(batch)

    def read(self, partition: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of keys."""
        found: list[bytes | None] = self._db_for_partition(partition).get(list(keys))
        return found

    def scan(self, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key and value of a partition."""
        for key, value in self._db_for_partition(partition).items():
            if key not in (self.offset_key, _TOPIC_KEY):
                yield key, value

    async def stop(self) -> None:
        """Close all files."""
        for partition in list(self._dbs):
            self.close_partition(partition)


class ByteTable(faust.Table[bytes, bytes]):
    """A table of bytes. Written through its manager, with the other tables of a partition."""

    data: Store
    logger = FAUST_LOG

    def _new_store(self) -> Store:
        options = {
            "block_cache_size": _BLOCK_CACHE,
            "write_buffer_size": _WRITE_BUFFER,
            "max_open_files": _OPEN_FILES,
        }
        return Store(
            "rocksdb://",
            self.app,
            self,
            table_name=self.name,
            key_serializer="raw",
            value_serializer="raw",
            loop=self.loop,
            options=options,
        )

    async def on_start(self) -> None:
        """Open the store; the changelog topic is declared in `topics/`."""
        await self.add_runtime_dependency(self.data)
