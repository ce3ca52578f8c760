"""Projections in a DuckDB file: columnar, for analysts who read it with SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from streams.payload.port import Scope
from streams.postgres import queries
from streams.projector.stores.files import WAIT_S, StoreBusy, StoreFile, writing_alone
from streams.projector.stores.port import ErasedRecords, Pagination, ProjectionStoreUnavailable
from streams.projector.stores.records import SealedRecord

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

query = queries("streams.projector.stores")
_SCHEMA = pa.schema(
    [
        ("projection_id", pa.string()),
        ("projection_type", pa.string()),
        ("tenant_id", pa.string()),
        ("organization_id", pa.string()),
        ("execution_id", pa.int64()),
        ("version", pa.int64()),
        ("place", pa.string()),
        ("labels", pa.list_(pa.string())),
        ("state", pa.binary()),
        ("first_position", pa.int64()),
        ("last_position", pa.int64()),
        ("projection_version", pa.int32()),
        ("checksum", pa.string()),
    ]
)


class DuckdbRecords:
    """Stores records in a table. DuckDB lets one process have the file open for writing, or
    several for reading, so each transaction opens it.
    """

    def __init__(self, path: Path, wait_s: float = WAIT_S) -> None:
        self._file = StoreFile(path, wait_s)

    async def write(self, records: Sequence[SealedRecord], erased: ErasedRecords | None) -> None:
        """Delete and write in one transaction."""
        await self._file.run(lambda: self._write(records, erased))

    async def read(self, projection_ids: Sequence[str]) -> Sequence[SealedRecord]:
        """Return the records that exist."""
        return await self._file.run(lambda: self._read("duckdb_read", list(projection_ids)))

    async def of_executions(
        self, execution_ids: Sequence[int], projection_type: str
    ) -> Sequence[SealedRecord]:
        """Return the records of a type that executions have."""
        wanted = (list(execution_ids), projection_type)
        return await self._file.run(lambda: self._read("duckdb_of_executions", *wanted))

    async def page(
        self, scope: Scope, projection_type: str, labels: Sequence[str], page: Pagination
    ) -> Sequence[SealedRecord]:
        """Return records that have all labels."""
        place, after_id = page.after or (None, None)
        whose = (scope.tenant_id, scope.organization_id, projection_type, list(labels))
        return await self._file.run(
            lambda: self._read("duckdb_page", *whose, place, after_id, page.limit)
        )

    def _write(self, records: Sequence[SealedRecord], erased: ErasedRecords | None) -> None:
        incoming = pa.Table.from_pylist([one._asdict() for one in records], schema=_SCHEMA)
        with self._opened(is_reader=False) as database:
            database.execute(query("duckdb_create"))
            database.register("incoming", incoming)
            database.execute("BEGIN TRANSACTION")
            if erased is not None:
                database.execute(query("duckdb_delete"), list(erased))
            database.execute(query("duckdb_make_room"))
            database.execute(query("duckdb_write"))
            database.execute("COMMIT")

    def _read(self, name: str, *arguments: object) -> list[SealedRecord]:
        if not self._file.path.exists():
            return []
        with self._opened(is_reader=True) as database:
            return [
                SealedRecord(*row)
                for row in database.execute(query(name), list(arguments)).fetchall()
            ]

    @contextmanager
    def _opened(self, *, is_reader: bool) -> Iterator[DuckDBPyConnection]:
        import duckdb  # it takes 50 ms, and most deployments have no such store

        try:
            self._file.path.parent.mkdir(parents=True, exist_ok=True)
            # DuckDB locks its file against other processes only.
            with (
                nullcontext() if is_reader else writing_alone(self._file.path),
                duckdb.connect(self._file.path, read_only=is_reader) as database,
            ):
                yield database
        except duckdb.ConnectionException as error:
            raise StoreBusy(str(error)) from error  # this process has it open for writing
        except duckdb.CatalogException as error:
            if not is_reader:
                raise _unavailable(self._file.path, error) from error
            raise StoreBusy(str(error)) from error  # it is just being created
        except (duckdb.Error, OSError) as error:
            if "lock" in str(error):
                raise StoreBusy(str(error)) from error
            raise _unavailable(self._file.path, error) from error


def _unavailable(path: Path, error: Exception) -> ProjectionStoreUnavailable:
    return ProjectionStoreUnavailable(f"{path} cannot be used: {error}")
