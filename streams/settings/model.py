"""The settings of one deployment, as one frozen value.

The sections are those of the configuration file. Durations and sizes are plain whole
numbers whose unit is in the name.
"""

from __future__ import annotations

import socket
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from streams.settings.credential_store import CredentialStoreSettings
from streams.settings.event_store import EventStoreSettings
from streams.settings.fields import Name, Pool, Port, Positive, Secret, Section, Segment, Text
from streams.settings.payload_store import PayloadStoreSettings
from streams.settings.projections import (
    DEFAULT_STORE,
    Materialization,
    ProjectionStoreSettings,
    Snapshots,
    check_materializations,
)
from streams.settings.serialization import Serialization


class Scheduler(Section):
    """Locality preference and limit of the frames of a worker."""

    locality_preference: Literal["node", "zone", "region", "any"] = "zone"
    # Over all stages; the frame policy's `parallelism` limits the frames of one stage.
    max_inflight_frames_per_worker: Positive = 64


class Runtime(Section):
    """Identity of this process; the parts of the locator in its events."""

    tenant_id: Segment = "default"
    organization_id: Segment = "default"
    cluster_id: Segment = "local"
    region: Segment = "none"
    zone: Segment = "none"
    # The host's name, not a pod's: pods of one node share the shared-memory tier.
    node_id: Segment = Field(default_factory=socket.gethostname)
    # Stable across restarts, because it is also the Kafka group.instance.id.
    shard_id: Segment = "local-0"
    # The pool whose work a worker runs; a step names it with `pool`.
    pool: Pool = "default"
    # A process with work and no progress for this long exits, to be restarted.
    stall_seconds: Positive = 60
    # The web server of a role: `/health` and `/ready`. Port 0 is any free one; null is none.
    web_host: Text = "127.0.0.1"
    web_port: int | None = Field(default=0, ge=0, le=65535)
    # Other processes of the role that also have the tables of a partition, for a fast takeover.
    table_standbys: int = Field(default=1, ge=0, le=10)
    scheduler: Scheduler = Scheduler()

    @property
    def call_limit_s(self) -> float:
        """Timeout of a call; shorter than a stall, so that a call never causes one."""
        return self.stall_seconds / 3

    @property
    def append_limit_s(self) -> float:
        """Time limit of an append or a request to the payload store, with retries."""
        return self.stall_seconds / 2


class Connect(Section):
    """Kafka Connect, which runs the mirror, and the folder its secrets are read from."""

    url: Text = "http://127.0.0.1:8083"
    secrets_dir: Text | None = None


class Analytics(Section):
    """Where Connect's sinks write: a Postgres database, and a bucket of the payload store's S3."""

    # Default: host and port of the log's server.
    host: Text | None = None
    port: Port | None = None
    database: Text = "analytics"
    user: Text = "noetl_analytics"
    password: Secret = Secret("")
    lake_bucket: Text = "noetl-lake"


class FramePolicySettings(Section):
    """Limits of a frame; null means no limit."""

    size: Positive | None = 50
    duration_ms: Positive | None = 30_000
    memory_bytes: Positive = 67_108_864
    parallelism: Positive = 1


class FramePolicyDefaults(Section):
    """Default frame policies, by kind of stage."""

    loop: FramePolicySettings = FramePolicySettings()
    fanout: FramePolicySettings = FramePolicySettings(
        size=1, duration_ms=5_000, memory_bytes=16_777_216, parallelism=8
    )
    reduce: FramePolicySettings = FramePolicySettings()


class Frames(Section):
    """Leases, attempts and concurrency of frames and commands."""

    lease_seconds: Positive = 60
    # A third of the lease: two heartbeats can be lost.
    heartbeat_seconds: Positive = 20
    max_attempts: Positive = 5
    # Maximum number of unfinished frames of a stage.
    window: Positive = 16
    row_concurrency: Positive = 16


class Api(Section):
    """Address of the API; without a port it uses a free one, written to its data folder."""

    host: Text = "127.0.0.1"
    port: Port | None = None
    # Address for clients; default: the one written to the stack's folder.
    url: Text | None = None
    # Bearer token of operators, who may replay a whole organization; without it nobody may.
    operator_token: Secret | None = None
    operator_token_file: Text | None = None


class Sinks(Section):
    """Folder of files written by sinks; default: `sinks` in the data folder."""

    folder: Text | None = None


class KubernetesSettings(Section):
    """Cluster of container tasks whose credential names none."""

    # A file; default: the worker's service account, if it runs in a cluster.
    kubeconfig: Text | None = None
    context: Text | None = None
    namespace: Text = "noetl"


class ToolSettings(Section):
    """Permissions and servers of tools."""

    # A shell command has all rights of the worker's account.
    shell: bool = False
    kubernetes: KubernetesSettings = KubernetesSettings()


class Settings(Section):
    """All settings of a deployment."""

    runtime: Runtime = Field(default_factory=Runtime)
    event_store: EventStoreSettings = EventStoreSettings()
    connect: Connect = Connect()
    analytics: Analytics = Analytics()
    serialization: Serialization = Serialization()
    payload_store: PayloadStoreSettings = PayloadStoreSettings()
    projection_stores: dict[Name, ProjectionStoreSettings] = Field(
        default_factory=lambda: {"default": ProjectionStoreSettings()}
    )
    materializations: dict[Name, Materialization] = Field(default_factory=dict)
    snapshots: Snapshots = Snapshots()
    frame_policy_defaults: FramePolicyDefaults = FramePolicyDefaults()
    frames: Frames = Frames()
    api: Api = Api()
    sinks: Sinks = Sinks()
    tools: ToolSettings = ToolSettings()
    # Credentials for `auth: name` in playbooks, such as {"dsn": ...}; every field is a secret.
    credentials: dict[Name, dict[Name, Secret]] = Field(default_factory=dict)
    credential_store: CredentialStoreSettings = CredentialStoreSettings()

    def with_database(self, name: str) -> Settings:
        """Return these settings with the log in another database of the same server."""
        connection = self.event_store.canonical_connection.model_copy(update={"database": name})
        store = self.event_store.model_copy(update={"canonical_connection": connection})
        return self.model_copy(update={"event_store": store})

    @field_validator("projection_stores")
    @classmethod
    def _default_is_postgres(
        cls, value: dict[str, ProjectionStoreSettings]
    ) -> dict[str, ProjectionStoreSettings]:
        if (backend := value["default"].backend) != "postgres":
            raise ValueError(
                f"'default' has the backend '{backend}', which is not available in this version; "
                "use postgres"
            )
        return value

    @model_validator(mode="after")
    def _materializations_have_stores(self) -> Self:
        check_materializations(self.materializations, self.projection_stores)
        return self

    @property
    def stores_of_projections(self) -> dict[str, str]:
        """The stores of projections that are not in the default one, by projection."""
        named = {name: one.store for name, one in self.materializations.items()}
        return {
            name: one for name, one in named.items() if one is not None and one != DEFAULT_STORE
        }

    @model_validator(mode="before")
    @classmethod
    def _fill_in_from_neighbours(cls, value: Any) -> Any:
        """Add the default projection store, and use its backend for snapshots."""
        if not isinstance(value, dict):
            return value
        stores = {} if (given := value.get("projection_stores")) is None else given
        snapshots = {} if (given := value.get("snapshots")) is None else given
        if not isinstance(stores, dict) or not isinstance(snapshots, dict):
            return value
        stores = {"default": {}, **stores}
        main = stores["default"]
        backend = main.get("backend") if isinstance(main, dict) else None
        usual = {"backend": backend} if backend else {}
        return {**value, "projection_stores": stores, "snapshots": {**usual, **snapshots}}
