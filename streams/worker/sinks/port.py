"""Port of sink drivers: persist one value, and return a reference to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from streams.errors import Refused
from streams.events.model import Json
from streams.worker.port import Call, Credentials

SinkReference = dict[str, Json]
"""{store, key, range}: locates what was written."""


class SinkRefused(Refused):
    """The storage rejects a write; `code` is the kind of error."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkJob:
    """One write. `secret` holds the fields of the sink's credential."""

    storage: str
    mode: str
    call: Call
    deployment: str = ""
    data: Json = None
    is_given: bool = True
    """Whether the sink has `data`; otherwise the result is persisted."""
    table: str | None = None
    key: tuple[str, ...] = ()
    statement: str | None = None
    params: Mapping[str, Json] = field(default_factory=dict)
    spec: Mapping[str, Json] = field(default_factory=dict)
    format: str = "json"
    chunk_size: int | None = None
    concurrency: int = 1
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """A unique name of this write, the same in every attempt."""
        call = self.call
        place = f"-{call.partition}" if call.partition else ""
        return f"{call.execution_id}/{call.step}/{call.task}-{call.entity_id}{place}"

    def setting(self, *names: str) -> str | None:
        """Return the first of these fields in `spec` or the credential."""
        for holder in (self.spec, self.secret):
            for name in names:
                if holder.get(name) not in (None, ""):
                    return str(holder[name])
        return None


class Driver(Protocol):
    """Writes to one kind of storage."""

    async def write(self, job: SinkJob) -> SinkReference:
        """Persist the job's value, and return once it is durable.

        Raises:
            BadConfig: the job is incomplete or not valid for this storage.
            SinkRefused: the storage rejects it.
            TargetUnavailable: the storage cannot be reached; retrying is safe.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkEnvironment:
    """Deployment settings and services that drivers use."""

    credentials: Credentials
    deployment: str
    folder: Path | None
    """The folder for files; None: files are not allowed."""
