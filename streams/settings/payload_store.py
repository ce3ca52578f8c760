"""Where payloads too big for an event are kept, cached and collected."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Self

from pydantic import field_validator, model_validator

from streams.settings.fields import NotNegative, Positive, Secret, Section, Text

EVENT_BYTES = 65_536
"""What an event carries at most; `streams.events.seal` has the same number."""


class PayloadConnection(Section):
    """The object store; without an endpoint, the provider's own. `path` is for `local`."""

    endpoint: Text | None = None
    bucket: Text = "noetl-payloads"
    region: Text = "us-east-1"
    access_key: Secret | None = None
    secret_key: Secret | None = None
    path: Text | None = None


class Cache(Section):
    """The tiers in front of the store; a budget of 0 switches a tier off."""

    tier_1_memory_mb: NotNegative = 512
    tier_15_node_budget_mb: NotNegative = 1024
    tier_15_grace_seconds: NotNegative = 30
    # Where shared memory is a folder, which all processes of the node must see.
    tier_15_path: Text = "/dev/shm"  # noqa: S108
    # memfd: sealed memory that the node's broker hands out, and files where none answers.
    tier_15_carrier: Literal["shm", "memfd"] = "shm"
    tier_2_disk_gb: NotNegative = 10
    tier_2_disk_path: Text = "/var/cache/noetl/payloads"


class ResultStores(Section):
    """The folders of the result stores `disk` and `pvc`; without a path, the worker's own.

    Workers that name the same folder read each other's copies. `duckdb` is always a worker's own.
    """

    disk_path: Text | None = None
    disk_mb: Positive = 1024
    pvc_path: Text | None = None
    pvc_mb: Positive = 1024
    duckdb_mb: Positive = 1024


class Collection(Section):
    """When a payload that nothing refers to any more is deleted.

    The role `collector` looks for results to end every `interval_seconds`, and goes through
    all objects every `sweep_seconds`; 0 switches either off.
    """

    strategy: Literal["reference-count", "ttl"] = "reference-count"
    ttl_days: Positive = 90
    interval_seconds: NotNegative = 60
    sweep_seconds: NotNegative = 86_400

    @property
    def retention(self) -> timedelta | None:
        """How long after its execution everything ends; None where only results do."""
        return timedelta(days=self.ttl_days) if self.strategy == "ttl" else None


class PayloadStoreSettings(Section):
    """The durable tier and everything in front of it."""

    backend: Literal["s3", "gcs", "azure-blob", "seaweedfs", "local"] = "s3"
    connection: PayloadConnection = PayloadConnection()
    # Data is inside its event up to this size, or less where an event has less room for it.
    threshold_bytes: Positive = EVENT_BYTES
    content_addressing: Literal["sha256"] = "sha256"
    encryption_at_rest: bool = True
    cache: Cache = Cache()
    results: ResultStores = ResultStores()
    gc: Collection = Collection()

    @property
    def kind(self) -> str:
        """Which of the result stores this one is; `object` where none has its name."""
        return {"s3": "s3", "seaweedfs": "s3", "gcs": "gcs"}.get(self.backend, "object")

    @field_validator("threshold_bytes")
    @classmethod
    def _fits_an_event(cls, value: int) -> int:
        """Take more as the most that an event carries: a file may be written for other logs."""
        return min(value, EVENT_BYTES)

    @model_validator(mode="after")
    def _local_has_a_folder(self) -> Self:
        if self.backend == "local" and self.connection.path is None:
            raise ValueError("backend 'local' needs 'connection.path', the folder to store in")
        return self
