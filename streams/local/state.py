"""The state file, by which other processes find a running stack."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import psutil

from streams.data_folder import layout_of, write_private
from streams.local.lock import is_same
from streams.local.service import ServiceState


class Phase(StrEnum):
    """Lifecycle phase of a stack."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of Postgres, and the passwords of its roles."""

    host: str
    port: int
    database: str
    superuser: str
    superuser_password: str
    role_passwords: Mapping[str, str]

    def dsn(self, role: str, *, database: str = "") -> str:
        """Return a connection string for one of the roles, or for the superuser."""
        known = {**self.role_passwords, self.superuser: self.superuser_password}
        password = quote(known[role], safe="")
        return f"postgresql://{role}:{password}@{self.host}:{self.port}/{database or self.database}"


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """The address of Kafka."""

    bootstrap: str


@dataclass(frozen=True, slots=True)
class ConnectAddress:
    """The address of Connect, and the folder of its connectors' secrets."""

    url: str
    secrets_dir: Path


@dataclass(frozen=True, slots=True)
class S3Address:
    """The address of the object store."""

    endpoint: str
    access_key: str
    secret_key: str
    bucket: str
    region: str


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """The addresses of the schema registry; None in the profile without one.

    `url` is for Confluent's protocol, `native_url` for Apicurio's.
    """

    url: str | None = None
    native_url: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A service's last reported status."""

    name: str
    version: str
    address: str
    log: Path
    state: ServiceState = ServiceState.WAITING
    pid: int | None = None
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class StackState:
    """One stack: its supervisor and the addresses of its services."""

    data: Path
    profile: str
    phase: Phase
    supervisor_pid: int
    supervisor_started_at: float
    postgres: PostgresAddress
    kafka: KafkaAddress
    connect: ConnectAddress
    s3: S3Address
    registry: RegistryAddress
    services: tuple[ServiceStatus, ...] = ()

    @property
    def is_alive(self) -> bool:
        """Return whether the recorded supervisor runs; its start time rules out a reused pid."""
        with suppress(psutil.Error):
            return is_same(psutil.Process(self.supervisor_pid), self.supervisor_started_at)
        return False

    def with_service(self, changed: ServiceStatus) -> StackState:
        """Return the state with one service's status replaced."""
        services = (
            changed if service.name == changed.name else service for service in self.services
        )
        return replace(self, services=tuple(services))


def write_state(state: StackState) -> None:
    """Replace the state file atomically, readable by its owner only: it has passwords."""
    fields = asdict(state)
    fields["parts"] = fields.pop("services")  # the key in files of earlier versions
    content = orjson.dumps(fields, default=str, option=orjson.OPT_INDENT_2)
    write_private(layout_of(state.data).state, content)


def read_supervised(data: Path) -> StackState | None:
    """Return the state of the stack in `data` if its supervisor runs, ready or not."""
    try:
        state = _parse(orjson.loads(layout_of(data).state.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        # Missing, or written by another version.
        return None
    return state if state.is_alive else None


def read_state(data: Path) -> StackState | None:
    """Return the stack in `data` when it is up and ready, else None."""
    state = read_supervised(data)
    return state if state is not None and state.phase is Phase.READY else None


def find_stack(data: Path | None = None) -> StackState | None:
    """Return the ready stack in `data`, by default in `.streams` of the current folder."""
    return read_state(layout_of(data).data)


def _parse(raw: dict[str, Any]) -> StackState:
    connect = raw["connect"]
    return StackState(
        data=Path(raw["data"]),
        profile=raw["profile"],
        phase=Phase(raw["phase"]),
        supervisor_pid=raw["supervisor_pid"],
        supervisor_started_at=raw["supervisor_started_at"],
        postgres=PostgresAddress(**raw["postgres"]),
        kafka=KafkaAddress(**raw["kafka"]),
        connect=ConnectAddress(connect["url"], Path(connect["secrets_dir"])),
        s3=S3Address(**raw["s3"]),
        registry=RegistryAddress(**raw["registry"]),
        services=tuple(_parse_service(service) for service in raw["parts"]),
    )


def _parse_service(raw: dict[str, Any]) -> ServiceStatus:
    return ServiceStatus(**{**raw, "log": Path(raw["log"]), "state": ServiceState(raw["state"])})
