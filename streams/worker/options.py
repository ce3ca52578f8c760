"""What a worker is and may do, and what it does it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.catalog.port import Playbooks
from streams.clock import Clock
from streams.kafka.dead_letters import DeadLetters
from streams.log.port import EventStore
from streams.payload.port import PayloadStore
from streams.playbook.result_policy import INLINE_BYTES, LARGE
from streams.results.copies.port import Copies
from streams.worker.attempt.input import Documents
from streams.worker.port import Partitions, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One worker's name and bounds.

    `name` must differ between two lives of the same process, because a claim is this
    worker's for as long as it lives and no longer.
    """

    name: str
    deployment: str = "local"
    slots: int = 4
    """Frames and commands at once."""
    inline_bytes: int = INLINE_BYTES
    """What an event carries of a result."""
    large_store: str = LARGE
    """What kind of store the payload store is, as large results name it."""
    row_concurrency: int = 16
    """Rows of a frame at once, where its policy says nothing."""
    lease_s: int = 60
    beat_s: float = 20.0
    margin_s: float = 2.0
    """How long before the end of its lease an owner that could not renew it stops."""
    longest_s: float = 4 * 3600.0
    """How long an attempt may take; one that takes longer is given up as hung."""
    patience_s: float = 30.0
    """How long a tool's own dependency may be down before the attempt is given up."""
    grace_s: float = 10.0
    """How long a stopping worker lets its frames and commands finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPorts:
    """Everything a worker touches outside itself."""

    log: EventStore
    payloads: PayloadStore
    documents: Documents
    playbooks: Playbooks
    tools: Mapping[str, Tool]
    clock: Clock
    dead_letters: DeadLetters
    partitions: Partitions | None = None
    """None: this deployment has no broker to read ranges from."""
    copies: Copies = field(default_factory=Copies)
    """The tiers that hold copies of results."""
