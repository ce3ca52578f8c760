"""Settings of derived state: projection stores, materializations, snapshots."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from streams.settings.fields import Positive, Section, Text, Texts

Backend = Literal["postgres", "search-store", "columnar-analytics", "streaming-materialized-view"]


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


class Materialization(Section):
    """A derived table that an external engine updates from the events."""

    backend: Literal["columnar-analytics", "streaming-materialized-view"]
    source: Literal["event_store"] = "event_store"
    include_payload_refs: bool = False
    barrier_interval_ms: Positive | None = None


class Snapshots(Section):
    """Backend of snapshots; default: that of the default projection store."""

    backend: Backend = "postgres"
