"""Settings of derived state: projection stores, materializations, snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from streams.settings.fields import Name, Positive, Section, Text, Texts

FileEngine = Literal["duckdb", "rocksdb"]
Backend = Literal[
    "postgres", "search-store", "columnar-analytics", "key-value", "streaming-materialized-view"
]
DEFAULT_STORE = "default"
_FILES: Mapping[str, FileEngine] = {"columnar-analytics": "duckdb", "key-value": "rocksdb"}


class FileStore(NamedTuple):
    """A projection store in a file or folder."""

    engine: FileEngine
    path: Path


class DatabaseStore(NamedTuple):
    """A projection store in a Postgres database."""

    dsn: str


class StoreConnection(Section):
    """A database's `dsn`, or the `hosts` of a search store."""

    dsn: Text | None = Field(default=None, repr=False)  # may hold a password
    hosts: Texts = ()


class ProjectionStoreSettings(Section):
    """One target of projections; Postgres without a `dsn` is the database of the log."""

    backend: Backend = "postgres"
    connection: StoreConnection = StoreConnection()

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        if self.backend == "search-store" and not self.connection.hosts:
            raise ValueError("backend 'search-store' needs 'connection.hosts', a list of URLs")
        if self.backend not in ("postgres", "search-store") and self.connection.dsn is None:
            raise ValueError(f"backend '{self.backend}' needs 'connection.dsn'")
        return self

    def target(self) -> FileStore | DatabaseStore | None:
        """Return where its projections are; None: in the database of the log.

        Raises:
            ValueError: projections cannot be stored there in this version.
        """
        dsn = self.connection.dsn
        if self.backend == "postgres":
            return None if dsn is None else DatabaseStore(dsn)
        if (engine := _FILES.get(self.backend)) is None:
            raise ValueError(
                f"backend '{self.backend}' is not available in this version; use 'postgres', "
                "'columnar-analytics' (DuckDB) or 'key-value' (RocksDB)"
            )
        scheme, _, path = (dsn or "").partition(":")
        if scheme != engine or not Path(path).is_absolute():
            raise ValueError(
                f"backend '{self.backend}' needs a 'connection.dsn' such as "
                f"'{engine}:/var/lib/streams/projections', with an absolute path"
            )
        return FileStore(engine, Path(path))


class Materialization(Section):
    """A projection by its name, and the store that has it.

    Without `store` it is a derived table of an external engine, which this version does not have.
    """

    backend: Backend | None = None
    store: Name | None = None
    source: Literal["event_store"] = "event_store"
    include_payload_refs: bool = False
    barrier_interval_ms: Positive | None = None

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if self.store is None and self.backend is None:
            raise ValueError("needs 'store', the name of a projection store, or 'backend'")
        return self


def check_materializations(
    materializations: Mapping[str, Materialization],
    stores: Mapping[str, ProjectionStoreSettings],
) -> None:
    """Check that stores exist and can hold projections.

    Raises:
        ValueError: a store is unknown, of another backend, or not available.
    """
    for name, one in materializations.items():
        if one.store is None or one.store == DEFAULT_STORE:
            continue
        where = f"'materializations.{name}.store'"
        if (store := stores.get(one.store)) is None:
            known = ", ".join(sorted(stores))
            raise ValueError(f"{where} is '{one.store}'; 'projection_stores' has {known}")
        if one.backend not in (None, store.backend):
            raise ValueError(
                f"{where} is '{one.store}', whose backend is '{store.backend}', not '{one.backend}'"
            )
        try:
            store.target()
        except ValueError as error:
            raise ValueError(f"{where} is '{one.store}': {error}") from error


class Snapshots(Section):
    """Backend of snapshots; default: that of the default projection store."""

    backend: Backend = "postgres"
