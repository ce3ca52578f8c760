"""Where payloads too big for an event are kept, cached and collected."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import field_validator, model_validator

from streams.settings.fields import NotNegative, Positive, Secret, Section, Text

EVENT_BYTES = 65_536
"""What an event carries at most; `streams.envelope.seal` has the same number."""


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
    """When a payload that nothing refers to any more is deleted."""

    strategy: Literal["reference-count", "ttl"] = "reference-count"
    ttl_days: Positive = 90


class PayloadStore(Section):
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

    @field_validator("threshold_bytes")
    @classmethod
    def _fits_an_event(cls, value: int) -> int:
        if value > EVENT_BYTES:
            raise ValueError(
                f"must be at most {EVENT_BYTES}, not {value}: the log takes no event that carries "
                "more; what is larger is stored as a payload in any case"
            )
        return value

    @model_validator(mode="after")
    def _local_has_a_folder(self) -> Self:
        if self.backend == "local" and self.connection.path is None:
            raise ValueError("backend 'local' needs 'connection.path', the folder to store in")
        return self
