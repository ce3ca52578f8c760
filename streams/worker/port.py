"""Ports of a worker: tools, fenced saves, credentials, playbooks, dead letters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from streams.events.model import Json, PayloadRef
from streams.playbook.spelling import Spelling

T = TypeVar("T")
Config = Mapping[str, Json]
"""A task's configuration with every template rendered."""
ReleasedSlot = Callable[[], AbstractContextManager[None]]
"""Context that a frame or command enters while it only waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Outcome of one tool call; `eval` templates read it as `outcome`.

    `error` has at least `kind` and `message`. `detail` holds fields specific to the tool, such
    as {"http": {"status": 503, "headers": {...}}} or {"pg": {"code": "40001"}}.
    """

    status: Literal["success", "error"]
    data: Json = None
    meta: Mapping[str, Json] = field(default_factory=dict)
    error: Mapping[str, Json] | None = None
    detail: Mapping[str, Json] = field(default_factory=dict)
    stored: PayloadRef | None = None
    """A payload that the call stored and `data` describes: it becomes a separate result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Identity of a call, so that a tool can apply its effects once."""

    tenant_id: str
    organization_id: str
    execution_id: int
    step: str
    task: str
    entity_id: int
    """frame_id or command_id"""
    attempt: int
    partition: str = ""
    """Position of the call in the entity: row number and count of calls of this task, `17.2`."""
    stage_id: int | None = None
    timeout_s: float | None = None
    tries: int = 1
    """Number of the try, where a rule retries."""
    spelling: Spelling = Spelling.SPEC
    """Decides the shape of the result: NoETL's tools return other mappings."""
    cause_id: int | None = field(default=None, compare=False)
    """The event that claimed the frame or command."""
    released_slot: ReleasedSlot = field(default=nullcontext, compare=False)
    """Context in which the call only waits, and its frame needs no slot of the worker."""
    released_lane: ReleasedSlot = field(default=nullcontext, compare=False)
    """Context in which the call waits before it begins, and other rows of its frame may run."""


class Tool(Protocol):
    """Runs one kind of task. A failure of the work is an Outcome, never an exception."""

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the task once.

        Raises:
            Unavailable: a dependency of the tool itself is down.
        """
        ...

    async def close(self) -> None:
        """Release sessions, pools and processes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Unique key of one save; its row is written in the same transaction as the rows."""

    deployment: str
    stage_id: int
    frame_id: int
    task: str
    partition: str = ""
    tenant_id: str = field(default="default", compare=False)
    """With `organization_id`, the owner of the credential; not part of the key."""
    organization_id: str = field(default="default", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Content of a fence: a later attempt that finds it adopts it and continues from here."""

    row_count: int
    cursor: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None
    """The output's payload reference, as JSON."""


class Retry(Protocol):
    """Retries a call while a dependency is down and the attempt's lease lasts."""

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `call`."""
        ...


class Saver(Protocol):
    """A tool that can take a frame's deferred calls as one batch, behind a fence."""

    def target(self, config: Config) -> str:
        """Return a name for the database this task writes to; equal for equal databases."""
        ...

    async def find(self, config: Config, fences: Sequence[Fence]) -> Mapping[Fence, Saved]:
        """Return those of `fences` that exist already."""
        ...

    async def save(
        self,
        batches: Sequence[tuple[Fence, Sequence[Config]]],
        saved: Saved,
        spelling: Spelling = Spelling.SPEC,
    ) -> Mapping[Fence, Saved]:
        """Write all batches, which share a target, and their fences in one transaction.

        Batches whose fence exists are not written; the content of their fence is returned.
        The statements of a batch go as COPY or multi-row statements where possible.

        Raises:
            SaveFailed: the database rejects the rows (with which and why); nothing was written.
            Unavailable: the database is down; the rows may or may not be written.
        """
        ...


class Credentials(Protocol):
    """Looks up the secret a task names with `auth`."""

    async def find(self, tenant_id: str, organization_id: str, name: str) -> Mapping[str, str]:
        """Return the credential's fields, for example {"dsn": ...}.

        Raises:
            UnknownCredential: it does not exist.
        """
        ...


class Partitions(Protocol):
    """Reads ranges of a Kafka topic, for loops over offsets."""

    async def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """Return each partition's first offset and the one after its last."""
        ...

    async def read(
        self, topic: str, partition: int, start: int, end: int
    ) -> Sequence[Mapping[str, Json]]:
        """Return the committed records from `start` up to, excluding, `end`.

        Raises:
            Unavailable: the broker cannot be reached, or times out.
        """
        ...
