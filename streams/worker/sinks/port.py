"""What a sink asks of a driver: persist one value, and say where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from streams.errors import Refused
from streams.events.model import Json
from streams.worker.port import Call, Credentials

SinkReference = dict[str, Json]
"""{store, key, range}: enough to find again what was written."""


class SinkRefused(Refused):
    """The storage refuses what a sink writes; `code` says what kind of refusal it is."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkJob:
    """One write. `secret` holds the fields of the credential that the sink names."""

    storage: str
    mode: str
    call: Call
    deployment: str = ""
    data: Json = None
    is_given: bool = True
    """Whether the author said what to persist; else it is the result as it was."""
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
        """A name that every attempt at this write has, and no other write."""
        call = self.call
        place = f"-{call.partition}" if call.partition else ""
        return f"{call.execution_id}/{call.step}/{call.task}-{call.entity_id}{place}"

    def setting(self, *names: str) -> str | None:
        """Return what `spec` or the credential says under one of these names."""
        for holder in (self.spec, self.secret):
            for name in names:
                if holder.get(name) not in (None, ""):
                    return str(holder[name])
        return None


class Driver(Protocol):
    """Writes to one kind of storage."""

    async def write(self, job: SinkJob) -> SinkReference:
        """Persist what the job holds, and return once it is durable.

        Raises:
            BadConfig: the job lacks something, or it has not the form this storage needs.
            SinkRefused: the storage refuses it.
            TargetUnavailable: the storage cannot be reached; writing again is safe.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkEnvironment:
    """What a driver may need of the deployment around it."""

    credentials: Credentials
    deployment: str
    folder: Path | None
    """The folder that files are written below; None: there is none here."""
