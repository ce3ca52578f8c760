"""Dependencies and limits of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.catalog.port import Playbooks
from streams.clock import Clock, SystemClock
from streams.holds import Holds
from streams.kafka.dead_letters import DeadLetters
from streams.log.port import EventStore
from streams.payload.port import PayloadStore
from streams.playbook.result_policy import INLINE_BYTES, LARGE
from streams.results.copies.port import Copies
from streams.worker.attempt.input import Documents
from streams.worker.counts import WorkCounts
from streams.worker.pace.rates import RateLimits, local_rates
from streams.worker.port import Credentials, Partitions, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One worker's name and limits.

    `name` must differ between incarnations of a process, because a claim ends with the
    process that made it.
    """

    name: str
    deployment: str = "local"
    slots: int = 4
    """Concurrent frames and commands."""
    inline_bytes: int = INLINE_BYTES
    """Most bytes of a result that an event carries."""
    large_store: str = LARGE
    """Kind of the payload store, as references to large results name it."""
    row_concurrency: int = 16
    """Concurrent rows of a frame whose policy sets no limit."""
    lease_s: int = 60
    beat_s: float = 20.0
    margin_s: float = 2.0
    """How long before the end of a lease that cannot be renewed its owner stops."""
    longest_s: float = 4 * 3600.0
    """How long an attempt may take before it is abandoned as hung."""
    give_up_after_s: float = 30.0
    """How long a tool's dependency may be down before the attempt is abandoned."""
    grace_s: float = 10.0
    """How long a stopping worker waits for its frames and commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPorts:
    """External dependencies of a worker."""

    log: EventStore
    payloads: PayloadStore
    documents: Documents
    playbooks: Playbooks
    tools: Mapping[str, Tool]
    clock: Clock
    dead_letters: DeadLetters
    credentials: Credentials | None = None
    """Looks up what a keychain names; tools have their own reference to it."""
    partitions: Partitions | None = None
    """None: this deployment has no broker."""
    copies: Copies = field(default_factory=Copies)
    """Tiers with copies of results."""
    holds: Holds = field(default_factory=Holds)
    """Reports which dependency is away."""
    counts: WorkCounts = field(default_factory=WorkCounts)
    rates: RateLimits = field(default_factory=lambda: local_rates(SystemClock()))
    """Rates of tasks; by default they hold for this process only."""
