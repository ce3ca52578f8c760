"""Where payloads too big for an event are kept, cached and collected."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from streams.settings.fields import NotNegative, Positive, Secret, Section, Text


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
    tier_2_disk_gb: NotNegative = 10
    tier_2_disk_path: Text = "/var/cache/noetl/payloads"


class ResultStores(Section):
    """The folders of the result stores `disk` and `pvc`; without a path, the worker's own.

    Workers that name the same folder read each other's copies.
    """

    disk_path: Text | None = None
    disk_mb: Positive = 1024
    pvc_path: Text | None = None
    pvc_mb: Positive = 1024


class Collection(Section):
    """When a payload that nothing refers to any more is deleted."""

    strategy: Literal["reference-count", "ttl"] = "reference-count"
    ttl_days: Positive = 90


class PayloadStore(Section):
    """The durable tier and everything in front of it."""

    backend: Literal["s3", "gcs", "azure-blob", "seaweedfs", "local"] = "s3"
    connection: PayloadConnection = PayloadConnection()
    # Inside an event up to this size; the ceiling keeps a mirrored record well under 1 MiB.
    threshold_bytes: Annotated[Positive, Field(le=262_144)] = 65_536
    content_addressing: Literal["sha256"] = "sha256"
    encryption_at_rest: bool = True
    cache: Cache = Cache()
    results: ResultStores = ResultStores()
    gc: Collection = Collection()

    @model_validator(mode="after")
    def _local_has_a_folder(self) -> Self:
        if self.backend == "local" and self.connection.path is None:
            raise ValueError("backend 'local' needs 'connection.path', the folder to store in")
        return self
