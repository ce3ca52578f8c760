"""What a worker needs from outside: tools, a saver with fences, credentials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from streams.events.model import Json, PayloadRef

T = TypeVar("T")
Config = Mapping[str, Json]
"""A task's configuration with every template rendered."""
Aside = Callable[[], AbstractContextManager[None]]
"""What a frame or command enters while it only waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one call of a tool came to; templates of `eval` read it as `outcome`.

    `error` has at least `kind` and `message`. `detail` holds what the tool adds under a name
    of its own, such as {"http": {"status": 503, "headers": {...}}} or {"pg": {"code": "40001"}}.
    """

    status: Literal["success", "error"]
    data: Json = None
    meta: Mapping[str, Json] = field(default_factory=dict)
    error: Mapping[str, Json] | None = None
    detail: Mapping[str, Json] = field(default_factory=dict)
    stored: PayloadRef | None = None
    """A payload that the call stored, and `data` tells of: it becomes a result of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who calls: names the attempt, so that a tool with effects can make them once."""

    tenant_id: str
    organization_id: str
    execution_id: int
    step: str
    task: str
    entity_id: int
    """frame_id or command_id"""
    attempt: int
    partition: str = ""
    """Which call within the entity: row number and count of calls of this task, `17.2`."""
    stage_id: int | None = None
    timeout_s: float | None = None
    tries: int = 1
    """Which try this is, where a rule said `retry`."""
    aside: Aside = field(default=nullcontext, compare=False)
    """Within it the call only waits for others, and its frame needs no slot of the worker."""


class Tool(Protocol):
    """Runs one kind of task. A failure of the work is an Outcome, never an exception."""

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the task once.

        Raises:
            Unavailable: what the tool itself needs is down, whatever the playbook does.
        """
        ...

    async def close(self) -> None:
        """Let go of sessions, pools and processes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Names one save for ever; its row is written in the same transaction as the rows."""

    deployment: str
    stage_id: int
    frame_id: int
    task: str
    partition: str = ""
    tenant_id: str = field(default="default", compare=False)
    """With `organization_id`, whose credential opens the database; no part of the name."""
    organization_id: str = field(default="default", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a fence remembers: a later attempt that finds it adopts it and goes on from here."""

    row_count: int
    cursor: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None
    """The output's payload reference, as JSON."""


class Insist(Protocol):
    """Repeats a call while something is down and the attempt's lease lasts."""

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what `call` returns."""
        ...


class Saver(Protocol):
    """A tool that can take a frame's deferred calls as one batch, behind a fence."""

    def target(self, config: Config) -> str:
        """Return a name for the database this task writes to; equal for equal databases."""
        ...

    async def find(self, config: Config, fences: Sequence[Fence]) -> Mapping[Fence, Saved]:
        """Return those of `fences` that are there already."""
        ...

    async def save(
        self, batches: Sequence[tuple[Fence, Sequence[Config]]], saved: Saved
    ) -> Mapping[Fence, Saved]:
        """Write all batches, which share a target, and their fences in ONE transaction.

        Batches whose fence is there already are not written; what their fence holds is
        returned. The statements of a batch go as COPY or multi-row statements where they can.

        Raises:
            SaveFailed: the database refuses the rows (says which and why); nothing was written.
            Unavailable: the database is down; nothing is known to be written.
        """
        ...


class Credentials(Protocol):
    """Finds the secret a task names with `auth`."""

    async def find(self, tenant_id: str, organization_id: str, name: str) -> Mapping[str, str]:
        """Return the credential's fields, for example {"dsn": ...}.

        Raises:
            UnknownCredential: there is none of that name.
        """
        ...


class Partitions(Protocol):
    """Reads ranges of a Kafka topic, for loops over offsets."""

    async def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """Return for each partition its first offset and the one after its last."""
        ...

    async def read(
        self, topic: str, partition: int, start: int, end: int
    ) -> Sequence[Mapping[str, Json]]:
        """Return the committed records from `start` up to `end`, which is not included.

        Raises:
            Unavailable: the broker cannot be reached, or does not deliver in time.
        """
        ...
