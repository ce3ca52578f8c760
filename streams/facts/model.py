"""Facts as values: one class for each topic, one field for each field of its Avro schema.

All of them have the event that they are as of: `event_id`, its `seq` in its root, its `position`
in the log, and when it was stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar, TypeAlias

FACTS_VERSION = 1
"""Version of the fold; raised when the same events give other facts, which needs a rebuild."""
PREFIX = "noetl.facts."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFact:
    """The last state of an execution."""

    NAME: ClassVar[str] = "execution"
    execution_id: int
    tenant_id: str
    organization_id: str
    path: str
    catalog_version: int
    parent_execution_id: int | None
    status: str
    started_at: datetime
    ended_at: datetime | None
    duration_ms: int | None
    error: str | None
    event_id: int
    seq: int
    position: int
    stored_at: datetime
    facts_version: int = FACTS_VERSION

    @property
    def key(self) -> str:
        """The key on the topic."""
        return str(self.execution_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFact:
    """The last state of a loop, fan-out or reduce step."""

    NAME: ClassVar[str] = "stage"
    stage_id: int
    execution_id: int
    tenant_id: str
    organization_id: str
    path: str
    step: str
    kind: str
    status: str
    total_rows: int | None
    frames: int
    frames_done: int
    rows_done: int
    rows_failed: int
    started_at: datetime
    ended_at: datetime | None
    duration_ms: int | None
    error: str | None
    event_id: int
    seq: int
    position: int
    stored_at: datetime
    facts_version: int = FACTS_VERSION

    @property
    def key(self) -> str:
        """The key on the topic."""
        return f"{self.execution_id}/{self.stage_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFact:
    """The last state of a frame, and what its attempts took."""

    NAME: ClassVar[str] = "frame"
    frame_id: int
    stage_id: int
    execution_id: int
    tenant_id: str
    organization_id: str
    path: str
    step: str
    ordinal: int
    shard_id: str | None
    status: str
    rows: int
    rows_failed: int
    retries: int
    attempts: int
    worker: str | None
    worker_ms: int
    output_bytes: int
    dispatched_at: datetime
    claimed_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None
    error: str | None
    event_id: int
    seq: int
    position: int
    stored_at: datetime
    facts_version: int = FACTS_VERSION

    @property
    def key(self) -> str:
        """The key on the topic."""
        return f"{self.execution_id}/{self.frame_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingFact:
    """What an execution used on one day, UTC. Sums over facts are exact."""

    NAME: ClassVar[str] = "billing"
    tenant_id: str
    organization_id: str
    day: date
    execution_id: int
    path: str
    requests: int
    rows: int
    rows_failed: int
    bytes: int
    worker_ms: int
    event_id: int
    seq: int
    position: int
    stored_at: datetime
    facts_version: int = FACTS_VERSION

    @property
    def key(self) -> str:
        """The key on the topic."""
        return f"{self.tenant_id}/{self.organization_id}/{self.day}/{self.execution_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFact:
    """One act: who did what to what."""

    NAME: ClassVar[str] = "audit"
    event_id: int
    tenant_id: str
    organization_id: str
    root_type: str
    root_id: int
    action: str
    actor: str | None
    producer: str
    subject: str
    reason: str | None
    causation_id: int | None
    correlation_id: str
    happened_at: datetime
    seq: int
    position: int
    stored_at: datetime
    facts_version: int = FACTS_VERSION

    @property
    def key(self) -> str:
        """The key on the topic."""
        return str(self.event_id)


Fact: TypeAlias = ExecutionFact | StageFact | FrameFact | BillingFact | AuditFact
KINDS: tuple[type[Fact], ...] = (ExecutionFact, StageFact, FrameFact, BillingFact, AuditFact)


def fact_topic(kind: type[Fact]) -> str:
    """Return the topic of a kind of facts."""
    return PREFIX + kind.NAME


TOPICS: dict[str, type[Fact]] = {fact_topic(kind): kind for kind in KINDS}
