"""Projections in RocksDB, the engine of the roles' tables: lookups by key without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from streams.payload.port import Scope
from streams.projector.stores.files import WAIT_S, StoreBusy, StoreFile
from streams.projector.stores.port import ErasedRecords, Pagination, ProjectionStoreUnavailable
from streams.projector.stores.records import SealedRecord

if TYPE_CHECKING:
    from rocksdict import Rdict, WriteBatch

_RECORD, _ID, _EXECUTION = b"r", b"i", b"e"
"""First part of keys: records in the order of queries, and where they are by id or execution."""
_STATE = SealedRecord._fields.index("state")


class RocksdbRecords:
    """Stores records in a folder. RocksDB lets one process write, and any read, so each
    transaction opens it; a batch of writes is applied as a whole, and synced.
    """

    def __init__(self, path: Path, wait_s: float = WAIT_S) -> None:
        self._file = StoreFile(path, wait_s)

    async def write(self, records: Sequence[SealedRecord], erased: ErasedRecords | None) -> None:
        """Delete and write in one batch."""
        await self._file.run(lambda: self._write(records, erased))

    async def read(self, projection_ids: Sequence[str]) -> Sequence[SealedRecord]:
        """Return the records that exist."""
        return await self._file.run(lambda: self._read(projection_ids))

    async def of_executions(
        self, execution_ids: Sequence[int], projection_type: str
    ) -> Sequence[SealedRecord]:
        """Return the records of a type that executions have."""
        prefixes = [_key(_EXECUTION, str(one), projection_type, "") for one in execution_ids]
        return await self._file.run(lambda: self._of_executions(prefixes))

    async def page(
        self, scope: Scope, projection_type: str, labels: Sequence[str], page: Pagination
    ) -> Sequence[SealedRecord]:
        """Return records that have all labels."""
        prefix = _key(_RECORD, projection_type, scope.tenant_id, scope.organization_id, "")
        start = prefix if page.after is None else prefix + _key(*page.after) + b"\0"
        return await self._file.run(lambda: self._page(prefix, start, set(labels), page.limit))

    def _write(self, records: Sequence[SealedRecord], erased: ErasedRecords | None) -> None:
        import rocksdict

        with self._opened(is_reader=False) as database:
            batch = rocksdict.WriteBatch(raw_mode=True)
            known = _found(database, [one.projection_id for one in records])
            for one in () if erased is None else _erased(database, erased):
                _delete(batch, one)
                known.pop(one.projection_id, None)
            for record in records:
                before = known.get(record.projection_id)
                if not record.replaces(before):
                    continue
                if before is not None:
                    _delete(batch, before)
                _put(batch, record)
            options = rocksdict.WriteOptions()
            options.sync = True
            database.write(batch, options)

    def _read(self, projection_ids: Sequence[str]) -> list[SealedRecord]:
        if not self._file.path.exists():
            return []
        with self._opened(is_reader=True) as database:
            return list(_found(database, projection_ids).values())

    def _of_executions(self, prefixes: Sequence[bytes]) -> list[SealedRecord]:
        if not self._file.path.exists():
            return []
        with self._opened(is_reader=True) as database:
            ids = [one for prefix in prefixes for one in _last_parts(database, prefix)]
            return list(_found(database, ids).values())

    def _page(
        self, prefix: bytes, start: bytes, labels: set[str], limit: int
    ) -> list[SealedRecord]:
        found: list[SealedRecord] = []
        if not self._file.path.exists():
            return found
        with self._opened(is_reader=True) as database:
            for _, value in _under(database, prefix, start):
                record = _record(value)
                if labels <= set(record.labels):
                    found.append(record)
                    if len(found) == limit:
                        break
        return found

    @contextmanager
    def _opened(self, *, is_reader: bool) -> Iterator[Rdict]:
        import rocksdict

        access = rocksdict.AccessType
        try:
            self._file.path.parent.mkdir(parents=True, exist_ok=True)
            database = rocksdict.Rdict(
                str(self._file.path),
                options=rocksdict.Options(raw_mode=True),
                access_type=access.read_only() if is_reader else access.read_write(),
            )
            try:
                yield database
            finally:
                database.close()
        except Exception as error:  # the driver raises no other class
            if isinstance(error, ProjectionStoreUnavailable | StoreBusy):
                raise
            # A reader may meet a database that is just being created or compacted.
            if "lock" in str(error).lower() or (is_reader and "No such file" in str(error)):
                raise StoreBusy(str(error)) from error
            raise ProjectionStoreUnavailable(
                f"{self._file.path} cannot be used: {error}"
            ) from error


def _key(first: bytes | str, *parts: str) -> bytes:
    return b"\0".join(
        [first.encode() if isinstance(first, str) else first, *map(str.encode, parts)]
    )


def _place(record: SealedRecord) -> bytes:
    whose = (record.projection_type, record.tenant_id, record.organization_id)
    return _key(_RECORD, *whose, record.place, record.projection_id)


def _by_execution(record: SealedRecord) -> bytes:
    return _key(_EXECUTION, str(record.execution_id), record.projection_type, record.projection_id)


def _put(batch: WriteBatch, record: SealedRecord) -> None:
    place = _place(record)
    fields = list(record)
    fields[_STATE] = None
    batch.put(place, orjson.dumps(fields) + b"\n" + record.state)  # JSON has no line feed
    batch.put(_key(_ID, record.projection_id), place)
    if record.execution_id is not None:
        batch.put(_by_execution(record), b"")


def _delete(batch: WriteBatch, record: SealedRecord) -> None:
    batch.delete(_place(record))
    batch.delete(_key(_ID, record.projection_id))
    if record.execution_id is not None:
        batch.delete(_by_execution(record))


def _record(value: bytes) -> SealedRecord:
    fields, _, state = value.partition(b"\n")
    known = orjson.loads(fields)
    known[_STATE] = state
    return SealedRecord(*known)


def _found(database: Rdict, ids: Sequence[str]) -> dict[str, SealedRecord]:
    places = [one for one in _values(database, [_key(_ID, one) for one in ids]) if one is not None]
    records = [_record(value) for value in _values(database, places) if value is not None]
    return {one.projection_id: one for one in records}


def _values(database: Rdict, keys: list[bytes]) -> list[bytes | None]:
    if not keys:
        return []
    found: list[bytes | None] = database.get([*keys])  # type: ignore[assignment]  # typed for one
    return found


def _erased(database: Rdict, erased: ErasedRecords) -> list[SealedRecord]:
    if erased.execution_id is None:
        everything = _RECORD + b"\0"
        return [_record(value) for _, value in _under(database, everything, everything)]
    prefix = _key(_EXECUTION, str(erased.execution_id), "")
    through = erased.through_version
    found = _found(database, _last_parts(database, prefix)).values()
    return [one for one in found if through is None or one.version <= through]


def _last_parts(database: Rdict, prefix: bytes) -> list[str]:
    return [key.rpartition(b"\0")[2].decode() for key, _ in _under(database, prefix, prefix)]


def _under(database: Rdict, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    for key, value in database.items(from_key=start):
        assert isinstance(key, bytes), "in raw mode keys are bytes"
        if not key.startswith(prefix):
            return
        yield key, value
