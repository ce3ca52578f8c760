"""Settings of the payload store, its caches and its collector."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Literal, Self

from pydantic import field_validator, model_validator

from streams.settings.fields import NotNegative, Positive, Secret, Section, Text

EVENT_BYTES = 65_536
"""Maximum size of an event; `streams.events.seal` has the same number."""


class PayloadConnection(Section):
    """The object store; `endpoint` defaults to the provider's. `path` is for `local`."""

    endpoint: Text | None = None
    bucket: Text = "noetl-payloads"
    region: Text = "us-east-1"
    access_key: Secret | None = None
    secret_key: Secret | None = None
    path: Text | None = None


class Cache(Section):
    """The tiers in front of the store; a limit of 0 disables a tier."""

    tier_1_memory_mb: NotNegative = 512
    tier_15_node_budget_mb: NotNegative = 1024
    tier_15_grace_seconds: NotNegative = 30
    # Folder of shared memory; all processes of the node must use the same one.
    tier_15_path: Text = "/dev/shm"  # noqa: S108
    # memfd: sealed memory handed out by the node's broker; files if no broker answers.
    tier_15_carrier: Literal["shm", "memfd"] = "shm"
    tier_2_disk_gb: NotNegative = 10
    tier_2_disk_path: Text = "/var/cache/noetl/payloads"


class ResultStores(Section):
    """Folders and limits of the result stores; a path defaults to the worker's own folder.

    Workers with the same folder share their copies. `duckdb` is never shared.
    """

    disk_path: Text | None = None
    disk_mb: Positive = 1024
    pvc_path: Text | None = None
    pvc_mb: Positive = 1024
    duckdb_mb: Positive = 1024


class Collection(Section):
    """When results expire and unreferenced payloads are deleted.

    The role `collector` expires results every `interval_seconds`, and sweeps all objects every
    `sweep_seconds`; 0 disables either.
    """

    strategy: Literal["reference-count", "ttl"] = "reference-count"
    ttl_days: Positive = 90
    interval_seconds: NotNegative = 60
    sweep_seconds: NotNegative = 86_400
    # How long results outlive the execution or workflow they are scoped to; 0: they end with it.
    scope_grace_seconds: NotNegative = 86_400

    @property
    def scope_grace(self) -> timedelta:
        """How long results outlive the execution they are scoped to."""
        return timedelta(seconds=self.scope_grace_seconds)

    @property
    def retention(self) -> timedelta | None:
        """Time after an execution when everything it stored expires; None: only results expire."""
        return timedelta(days=self.ttl_days) if self.strategy == "ttl" else None


class PayloadStoreSettings(Section):
    """The payload store and its caches."""

    backend: Literal["s3", "gcs", "azure-blob", "seaweedfs", "local"] = "s3"
    connection: PayloadConnection = PayloadConnection()
    # Data up to this size is stored in its event, if the event has room for it.
    threshold_bytes: Positive = EVENT_BYTES
    content_addressing: Literal["sha256"] = "sha256"
    encryption_at_rest: bool = True
    cache: Cache = Cache()
    results: ResultStores = ResultStores()
    gc: Collection = Collection()

    @property
    def kind(self) -> str:
        """The result store kind of this backend; `object` if it has none of its own."""
        return {"s3": "s3", "seaweedfs": "s3", "gcs": "gcs"}.get(self.backend, "object")

    @property
    def location(self) -> str:
        """The prefix of the payloads' physical URIs: a bucket, or a folder; ends with `/`."""
        if self.backend == "local":
            return f"{os.path.abspath(self.connection.path or '')}/"
        scheme = {"gcs": "gs", "azure-blob": "az"}.get(self.backend, "s3")
        return f"{scheme}://{self.connection.bucket}/"

    @field_validator("threshold_bytes")
    @classmethod
    def _fits_an_event(cls, value: int) -> int:
        """Reduce a larger value to the maximum size of an event."""
        return min(value, EVENT_BYTES)

    @model_validator(mode="after")
    def _local_has_a_folder(self) -> Self:
        if self.backend == "local" and self.connection.path is None:
            raise ValueError("backend 'local' needs 'connection.path', the folder to store in")
        return self
