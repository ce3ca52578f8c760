"""One class for each event type: written by `streams events generate`, not by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NotRequired, Required, TypeAlias, TypedDict

from streams.events.errors import UnreadableEvent
from streams.events.model import Json, PayloadRef, Routing
from streams.events.reading import (
    EventColumns,
    EventFields,
    bool_of,
    fields_of,
    freeze,
    int_of,
    json_of,
    maybe_bool,
    maybe_int,
    maybe_str,
    object_of,
    objects_of,
    payload_of,
    shape_of,
    text_of,
    unfrozen,
)
from streams.events.upcast import at_version


class ResultEnvelope(TypedDict):
    status: Required[str]
    data: NotRequired[Json]
    ref: NotRequired[dict[str, Json]]
    extracted: NotRequired[dict[str, Json]]
    error: NotRequired[Json]
    meta: NotRequired[dict[str, Json]]
    counts: NotRequired[dict[str, Json]]
    tasks: NotRequired[dict[str, Json]]
    tasks_elsewhere: NotRequired[list[dict[str, Json]]]
    ctx: NotRequired[dict[str, Json]]
    ctx_elsewhere: NotRequired[list[dict[str, Json]]]
    vars: NotRequired[dict[str, Json]]


class FailureResult(TypedDict):
    status: Required[str]
    errors: Required[list[dict[str, Json]]]
    data: NotRequired[Json]


class LoopOutcome(TypedDict):
    status: Required[str]
    context: Required[LoopCounts]


class LoopCounts(TypedDict):
    total: Required[int]
    completed: Required[int]
    failed: Required[int]


class FaninOutcome(TypedDict):
    status: Required[str]
    context: Required[ShardCounts]


class ShardCounts(TypedDict):
    done: Required[int]
    failed: Required[int]
    total: Required[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookInitialized:
    """An execution was created, with its inputs."""

    TYPE: ClassVar[Literal["playbook.initialized"]] = "playbook.initialized"
    node_name: ClassVar[None] = None
    path: str
    version: int
    trigger_id: int | None = None
    parent_step: str | None = None
    parent_command_id: int | None = None
    reply_to: str | None = None
    detached: bool | None = None
    pool: str | None = None
    subscription: str | None = None
    fork_parts: int | None = None
    workload: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> PlaybookInitialized:
        """Return the fields of a playbook.initialized."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_PlaybookInitialized)
        new.path = str(meta["path"])
        new.version = int(meta["version"])
        new.trigger_id = maybe_int(meta, "trigger_id")
        new.parent_step = maybe_str(meta, "parent_step")
        new.parent_command_id = maybe_int(meta, "parent_command_id")
        new.reply_to = maybe_str(meta, "reply_to")
        new.detached = maybe_bool(meta, "detached")
        new.pool = maybe_str(meta, "pool")
        new.subscription = maybe_str(meta, "subscription")
        new.fork_parts = maybe_int(meta, "fork_parts")
        new.workload = object_of(context.get("workload"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a playbook.initialized."""
        meta: dict[str, Routing] = {
            "path": self.path,
            "version": self.version,
        }
        if self.trigger_id is not None:
            meta["trigger_id"] = str(self.trigger_id)
        if self.parent_step is not None:
            meta["parent_step"] = self.parent_step
        if self.parent_command_id is not None:
            meta["parent_command_id"] = str(self.parent_command_id)
        if self.reply_to is not None:
            meta["reply_to"] = self.reply_to
        if self.detached is not None:
            meta["detached"] = self.detached
        if self.pool is not None:
            meta["pool"] = self.pool
        if self.subscription is not None:
            meta["subscription"] = self.subscription
        if self.fork_parts is not None:
            meta["fork_parts"] = self.fork_parts
        context: dict[str, Json] = {}
        if self.workload is not None:
            context["workload"] = self.workload
        return {
            "type": "playbook.initialized",
            "meta": meta,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_PlaybookInitialized = unfrozen(PlaybookInitialized)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookCompleted:
    """The execution succeeded, or ended PARTIAL."""

    TYPE: ClassVar[Literal["playbook.completed"]] = "playbook.completed"
    node_name: ClassVar[None] = None
    status: str
    partial: bool | None = None
    result: ResultEnvelope | None = None
    error: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> PlaybookCompleted:
        """Return the fields of a playbook.completed."""
        meta = event.meta
        new = object.__new__(_PlaybookCompleted)
        new.status = event.status or ""
        new.partial = maybe_bool(meta, "partial")
        new.result = shape_of(event.result, ResultEnvelope)
        new.error = event.error
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a playbook.completed."""
        meta: dict[str, Routing] = {}
        if self.partial is not None:
            meta["partial"] = self.partial
        return {
            "type": "playbook.completed",
            "meta": meta,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": json_of(self.result),
        }


_PlaybookCompleted = unfrozen(PlaybookCompleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookFailed:
    """The execution failed; has the step, the failed rows and the error."""

    TYPE: ClassVar[Literal["playbook.failed"]] = "playbook.failed"
    node_name: ClassVar[None] = None
    status: str
    error: str
    failed_step: str | None = None
    failed_rows: int | None = None
    result: FailureResult | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> PlaybookFailed:
        """Return the fields of a playbook.failed."""
        meta = event.meta
        new = object.__new__(_PlaybookFailed)
        new.status = event.status or ""
        new.error = event.error or ""
        new.failed_step = maybe_str(meta, "failed_step")
        new.failed_rows = maybe_int(meta, "failed_rows")
        new.result = shape_of(event.result, FailureResult)
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a playbook.failed."""
        meta: dict[str, Routing] = {}
        if self.failed_step is not None:
            meta["failed_step"] = self.failed_step
        if self.failed_rows is not None:
            meta["failed_rows"] = self.failed_rows
        return {
            "type": "playbook.failed",
            "meta": meta,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": json_of(self.result),
        }


_PlaybookFailed = unfrozen(PlaybookFailed)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInitialized:
    """The playbook was loaded and parsed."""

    TYPE: ClassVar[Literal["workflow.initialized"]] = "workflow.initialized"
    node_name: ClassVar[None] = None
    steps: int

    @classmethod
    def read(cls, event: EventFields) -> WorkflowInitialized:
        """Return the fields of a workflow.initialized."""
        meta = event.meta
        new = object.__new__(_WorkflowInitialized)
        new.steps = int(meta["steps"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a workflow.initialized."""
        meta: dict[str, Routing] = {
            "steps": self.steps,
        }
        return {
            "type": "workflow.initialized",
            "meta": meta,
        }


_WorkflowInitialized = unfrozen(WorkflowInitialized)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowCompleted:
    """No step is running or pending."""

    TYPE: ClassVar[Literal["workflow.completed"]] = "workflow.completed"
    node_name: ClassVar[None] = None
    status: str

    @classmethod
    def read(cls, event: EventFields) -> WorkflowCompleted:
        """Return the fields of a workflow.completed."""
        new = object.__new__(_WorkflowCompleted)
        new.status = event.status or ""
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a workflow.completed."""
        meta: dict[str, Routing] = {}
        return {
            "type": "workflow.completed",
            "meta": meta,
            "status": self.status,
        }


_WorkflowCompleted = unfrozen(WorkflowCompleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFailed:
    """A step failed and no arc handles its error, or the playbook returned an error."""

    TYPE: ClassVar[Literal["workflow.failed"]] = "workflow.failed"
    node_name: ClassVar[None] = None
    status: str
    error: str
    failed_step: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> WorkflowFailed:
        """Return the fields of a workflow.failed."""
        meta = event.meta
        new = object.__new__(_WorkflowFailed)
        new.status = event.status or ""
        new.error = event.error or ""
        new.failed_step = maybe_str(meta, "failed_step")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a workflow.failed."""
        meta: dict[str, Routing] = {}
        if self.failed_step is not None:
            meta["failed_step"] = self.failed_step
        return {
            "type": "workflow.failed",
            "meta": meta,
            "status": self.status,
            "error": self.error,
        }


_WorkflowFailed = unfrozen(WorkflowFailed)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnter:
    """A step was activated, as the first one or by an arc."""

    TYPE: ClassVar[Literal["step.enter"]] = "step.enter"
    node_name: str
    node_type: str
    activation: int
    from_step: str | None = None
    args: dict[str, Json] | None = None
    args_elsewhere: list[dict[str, Json]] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> StepEnter:
        """Return the fields of a step.enter."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_StepEnter)
        new.node_name = event.node_name or ""
        new.node_type = event.node_type or ""
        new.activation = int(meta["activation"])
        new.from_step = maybe_str(meta, "from_step")
        new.args = object_of(context.get("args"))
        new.args_elsewhere = objects_of(context.get("args_elsewhere"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a step.enter."""
        meta: dict[str, Routing] = {
            "activation": self.activation,
        }
        if self.from_step is not None:
            meta["from_step"] = self.from_step
        context: dict[str, Json] = {}
        if self.args is not None:
            context["args"] = self.args
        if self.args_elsewhere is not None:
            context["args_elsewhere"] = [*self.args_elsewhere]
        return {
            "type": "step.enter",
            "meta": meta,
            "node_name": self.node_name,
            "node_type": self.node_type,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_StepEnter = unfrozen(StepEnter)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepExit:
    """A step finished; its arcs are evaluated."""

    TYPE: ClassVar[Literal["step.exit"]] = "step.exit"
    node_name: str
    status: str
    activation: int
    loop_id: int | None = None
    ctx: dict[str, Json] | None = None
    ctx_elsewhere: list[dict[str, Json]] | None = None
    then: str | None = None
    failed_rows: int | None = None
    errors: list[dict[str, Json]] | None = None
    error: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> StepExit:
        """Return the fields of a step.exit."""
        meta = event.meta
        result = fields_of(event.result)
        new = object.__new__(_StepExit)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.activation = int(meta["activation"])
        new.loop_id = maybe_int(meta, "loop_id")
        new.ctx = object_of(result.get("ctx"))
        new.ctx_elsewhere = objects_of(result.get("ctx_elsewhere"))
        new.then = text_of(result.get("then"))
        new.failed_rows = int_of(result.get("failed_rows"))
        new.errors = objects_of(result.get("errors"))
        new.error = event.error
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a step.exit."""
        meta: dict[str, Routing] = {
            "activation": self.activation,
        }
        if self.loop_id is not None:
            meta["loop_id"] = str(self.loop_id)
        result: dict[str, Json] = {}
        if self.ctx is not None:
            result["ctx"] = self.ctx
        if self.ctx_elsewhere is not None:
            result["ctx_elsewhere"] = [*self.ctx_elsewhere]
        if self.then is not None:
            result["then"] = self.then
        if self.failed_rows is not None:
            result["failed_rows"] = self.failed_rows
        if self.errors is not None:
            result["errors"] = [*self.errors]
        return {
            "type": "step.exit",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": result or None,
        }


_StepExit = unfrozen(StepExit)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandIssued:
    """An attempt at a tool step was queued for a pool."""

    TYPE: ClassVar[Literal["command.issued"]] = "command.issued"
    node_name: str
    command_id: int
    attempt: int
    pool: str
    tool: str
    activation: int
    document: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> CommandIssued:
        """Return the fields of a command.issued."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_CommandIssued)
        new.node_name = event.node_name or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.pool = str(meta["pool"])
        new.tool = str(meta["tool"])
        new.activation = int(meta["activation"])
        new.document = object_of(context.get("document"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.issued."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "pool": self.pool,
            "tool": self.tool,
            "activation": self.activation,
        }
        context: dict[str, Json] = {}
        if self.document is not None:
            context["document"] = self.document
        return {
            "type": "command.issued",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_CommandIssued = unfrozen(CommandIssued)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandClaimed:
    """One worker holds the command for the duration of a lease."""

    TYPE: ClassVar[Literal["command.claimed"]] = "command.claimed"
    node_name: str
    command_id: int
    attempt: int
    worker: str
    lease_seconds: int

    @classmethod
    def read(cls, event: EventFields) -> CommandClaimed:
        """Return the fields of a command.claimed."""
        meta = event.meta
        new = object.__new__(_CommandClaimed)
        new.node_name = event.node_name or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.lease_seconds = int(meta["lease_seconds"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.claimed."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "worker": self.worker,
            "lease_seconds": self.lease_seconds,
        }
        return {
            "type": "command.claimed",
            "meta": meta,
            "node_name": self.node_name,
        }


_CommandClaimed = unfrozen(CommandClaimed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStarted:
    """The tool started (only for tools that report it)."""

    TYPE: ClassVar[Literal["command.started"]] = "command.started"
    node_name: str
    command_id: int
    attempt: int
    worker: str

    @classmethod
    def read(cls, event: EventFields) -> CommandStarted:
        """Return the fields of a command.started."""
        meta = event.meta
        new = object.__new__(_CommandStarted)
        new.node_name = event.node_name or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.started."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "worker": self.worker,
        }
        return {
            "type": "command.started",
            "meta": meta,
            "node_name": self.node_name,
        }


_CommandStarted = unfrozen(CommandStarted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHeartbeat:
    """The owner renewed its lease."""

    TYPE: ClassVar[Literal["command.heartbeat"]] = "command.heartbeat"
    node_name: str
    command_id: int
    attempt: int
    worker: str
    lease_seconds: int
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> CommandHeartbeat:
        """Return the fields of a command.heartbeat."""
        meta = event.meta
        new = object.__new__(_CommandHeartbeat)
        new.node_name = event.node_name or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.lease_seconds = int(meta["lease_seconds"])
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.heartbeat."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "worker": self.worker,
            "lease_seconds": self.lease_seconds,
        }
        return {
            "type": "command.heartbeat",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
        }


_CommandHeartbeat = unfrozen(CommandHeartbeat)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCompleted:
    """The tool succeeded; its result is inline or in a payload."""

    TYPE: ClassVar[Literal["command.completed"]] = "command.completed"
    node_name: str
    status: str
    command_id: int
    attempt: int
    worker: str
    loop_id: int | None = None
    result: ResultEnvelope | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> CommandCompleted:
        """Return the fields of a command.completed."""
        meta = event.meta
        new = object.__new__(_CommandCompleted)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.loop_id = maybe_int(meta, "loop_id")
        new.result = shape_of(event.result, ResultEnvelope)
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.completed."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "worker": self.worker,
        }
        if self.loop_id is not None:
            meta["loop_id"] = str(self.loop_id)
        return {
            "type": "command.completed",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "payload_ref": self.payload_ref,
            "result": json_of(self.result),
        }


_CommandCompleted = unfrozen(CommandCompleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailed:
    """The tool failed after its retries."""

    TYPE: ClassVar[Literal["command.failed"]] = "command.failed"
    node_name: str
    status: str
    error: str
    command_id: int
    attempt: int
    worker: str
    loop_id: int | None = None
    result: ResultEnvelope | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> CommandFailed:
        """Return the fields of a command.failed."""
        meta = event.meta
        new = object.__new__(_CommandFailed)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.error = event.error or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.loop_id = maybe_int(meta, "loop_id")
        new.result = shape_of(event.result, ResultEnvelope)
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.failed."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "worker": self.worker,
        }
        if self.loop_id is not None:
            meta["loop_id"] = str(self.loop_id)
        return {
            "type": "command.failed",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": json_of(self.result),
        }


_CommandFailed = unfrozen(CommandFailed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLeaseExpired:
    """The owner's lease expired, or its worker restarted; the command is issued again."""

    TYPE: ClassVar[Literal["command.lease_expired"]] = "command.lease_expired"
    node_name: str
    command_id: int
    attempt: int
    worker: str
    reason: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> CommandLeaseExpired:
        """Return the fields of a command.lease_expired."""
        meta = event.meta
        new = object.__new__(_CommandLeaseExpired)
        new.node_name = event.node_name or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.reason = maybe_str(meta, "reason")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.lease_expired."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "worker": self.worker,
        }
        if self.reason is not None:
            meta["reason"] = self.reason
        return {
            "type": "command.lease_expired",
            "meta": meta,
            "node_name": self.node_name,
        }


_CommandLeaseExpired = unfrozen(CommandLeaseExpired)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReleased:
    """A worker that is shutting down returned the command."""

    TYPE: ClassVar[Literal["command.released"]] = "command.released"
    node_name: str
    command_id: int
    attempt: int
    worker: str

    @classmethod
    def read(cls, event: EventFields) -> CommandReleased:
        """Return the fields of a command.released."""
        meta = event.meta
        new = object.__new__(_CommandReleased)
        new.node_name = event.node_name or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.released."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
            "worker": self.worker,
        }
        return {
            "type": "command.released",
            "meta": meta,
            "node_name": self.node_name,
        }


_CommandReleased = unfrozen(CommandReleased)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCancelled:
    """Its execution ended or was cancelled first."""

    TYPE: ClassVar[Literal["command.cancelled"]] = "command.cancelled"
    node_name: str
    command_id: int
    attempt: int

    @classmethod
    def read(cls, event: EventFields) -> CommandCancelled:
        """Return the fields of a command.cancelled."""
        meta = event.meta
        new = object.__new__(_CommandCancelled)
        new.node_name = event.node_name or ""
        new.command_id = int(meta["command_id"])
        new.attempt = int(meta["attempt"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a command.cancelled."""
        meta: dict[str, Routing] = {
            "command_id": str(self.command_id),
            "attempt": self.attempt,
        }
        return {
            "type": "command.cancelled",
            "meta": meta,
            "node_name": self.node_name,
        }


_CommandCancelled = unfrozen(CommandCancelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDone:
    """One task of a pipeline succeeded (only if the playbook asks for a trace)."""

    TYPE: ClassVar[Literal["call.done"]] = "call.done"
    node_name: str
    status: str
    call_id: int
    command_id: int | None = None
    frame_id: int | None = None
    task: str
    attempt: int
    result: Json = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> CallDone:
        """Return the fields of a call.done."""
        meta = event.meta
        new = object.__new__(_CallDone)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.call_id = int(meta["call_id"])
        new.command_id = maybe_int(meta, "command_id")
        new.frame_id = maybe_int(meta, "frame_id")
        new.task = str(meta["task"])
        new.attempt = int(meta["attempt"])
        new.result = event.result
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a call.done."""
        meta: dict[str, Routing] = {
            "call_id": str(self.call_id),
            "task": self.task,
            "attempt": self.attempt,
        }
        if self.command_id is not None:
            meta["command_id"] = str(self.command_id)
        if self.frame_id is not None:
            meta["frame_id"] = str(self.frame_id)
        return {
            "type": "call.done",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "payload_ref": self.payload_ref,
            "result": self.result,
        }


_CallDone = unfrozen(CallDone)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallError:
    """One task of a pipeline failed (only if the playbook asks for a trace)."""

    TYPE: ClassVar[Literal["call.error"]] = "call.error"
    node_name: str
    status: str
    error: str
    call_id: int
    command_id: int | None = None
    frame_id: int | None = None
    task: str
    attempt: int
    result: Json = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> CallError:
        """Return the fields of a call.error."""
        meta = event.meta
        new = object.__new__(_CallError)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.error = event.error or ""
        new.call_id = int(meta["call_id"])
        new.command_id = maybe_int(meta, "command_id")
        new.frame_id = maybe_int(meta, "frame_id")
        new.task = str(meta["task"])
        new.attempt = int(meta["attempt"])
        new.result = event.result
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a call.error."""
        meta: dict[str, Routing] = {
            "call_id": str(self.call_id),
            "task": self.task,
            "attempt": self.attempt,
        }
        if self.command_id is not None:
            meta["command_id"] = str(self.command_id)
        if self.frame_id is not None:
            meta["frame_id"] = str(self.frame_id)
        return {
            "type": "call.error",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": self.result,
        }


_CallError = unfrozen(CallError)


StageOpenedKind: TypeAlias = Literal["loop", "fanout", "reduce"]
_STAGE_OPENED_KIND: dict[Routing, StageOpenedKind] = {
    "loop": "loop",
    "fanout": "fanout",
    "reduce": "reduce",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOpened:
    """A loop or fan-out step started, with its frame policy and source."""

    TYPE: ClassVar[Literal["stage.opened"]] = "stage.opened"
    node_name: str
    stage_id: int
    kind: StageOpenedKind
    loop_id: int
    dsl_ref: str
    pool: str
    total_rows: int | None = None
    activation: int
    policy: dict[str, Json]
    source: dict[str, Json]
    document: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> StageOpened:
        """Return the fields of a stage.opened."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_StageOpened)
        new.node_name = event.node_name or ""
        new.stage_id = int(meta["stage_id"])
        new.kind = _STAGE_OPENED_KIND[meta["kind"]]
        new.loop_id = int(meta["loop_id"])
        new.dsl_ref = str(meta["dsl_ref"])
        new.pool = str(meta["pool"])
        new.total_rows = maybe_int(meta, "total_rows")
        new.activation = int_of(context.get("activation")) or 0
        new.policy = object_of(context.get("policy")) or {}
        new.source = object_of(context.get("source")) or {}
        new.document = object_of(context.get("document"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a stage.opened."""
        meta: dict[str, Routing] = {
            "stage_id": str(self.stage_id),
            "kind": self.kind,
            "loop_id": str(self.loop_id),
            "dsl_ref": self.dsl_ref,
            "pool": self.pool,
        }
        if self.total_rows is not None:
            meta["total_rows"] = self.total_rows
        context: dict[str, Json] = {
            "activation": self.activation,
            "policy": self.policy,
            "source": self.source,
        }
        if self.document is not None:
            context["document"] = self.document
        return {
            "type": "stage.opened",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_StageOpened = unfrozen(StageOpened)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageClosed:
    """Every frame of the stage has ended."""

    TYPE: ClassVar[Literal["stage.closed"]] = "stage.closed"
    node_name: str
    status: str
    stage_id: int
    loop_id: int
    frames: int
    rows: int
    failed_rows: int
    errors: list[dict[str, Json]]
    retries: int
    error: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> StageClosed:
        """Return the fields of a stage.closed."""
        meta = event.meta
        result = fields_of(event.result)
        new = object.__new__(_StageClosed)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.stage_id = int(meta["stage_id"])
        new.loop_id = int(meta["loop_id"])
        new.frames = int(meta["frames"])
        new.rows = int(meta["rows"])
        new.failed_rows = int(meta["failed_rows"])
        new.errors = objects_of(result.get("errors")) or []
        new.retries = int_of(result.get("retries")) or 0
        new.error = event.error
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a stage.closed."""
        meta: dict[str, Routing] = {
            "stage_id": str(self.stage_id),
            "loop_id": str(self.loop_id),
            "frames": self.frames,
            "rows": self.rows,
            "failed_rows": self.failed_rows,
        }
        result: dict[str, Json] = {
            "errors": [*self.errors],
            "retries": self.retries,
        }
        return {
            "type": "stage.closed",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": result or None,
        }


_StageClosed = unfrozen(StageClosed)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameDispatched:
    """An attempt at a window of rows was queued for a pool."""

    TYPE: ClassVar[Literal["frame.dispatched"]] = "frame.dispatched"
    node_name: str
    frame_id: int
    stage_id: int
    loop_id: int
    attempt: int
    ordinal: int
    pool: str
    shard_id: str | None = None
    iter_index: int | None = None
    iter_key: str | None = None
    cursor: dict[str, Json]
    ctx: dict[str, Json] | None = None
    ctx_elsewhere: list[dict[str, Json]] | None = None
    vars: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> FrameDispatched:
        """Return the fields of a frame.dispatched."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_FrameDispatched)
        new.node_name = event.node_name or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.loop_id = int(meta["loop_id"])
        new.attempt = int(meta["attempt"])
        new.ordinal = int(meta["ordinal"])
        new.pool = str(meta["pool"])
        new.shard_id = maybe_str(meta, "shard_id")
        new.iter_index = maybe_int(meta, "iter_index")
        new.iter_key = maybe_str(meta, "iter_key")
        new.cursor = object_of(context.get("cursor")) or {}
        new.ctx = object_of(context.get("ctx"))
        new.ctx_elsewhere = objects_of(context.get("ctx_elsewhere"))
        new.vars = object_of(context.get("vars"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.dispatched."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "loop_id": str(self.loop_id),
            "attempt": self.attempt,
            "ordinal": self.ordinal,
            "pool": self.pool,
        }
        if self.shard_id is not None:
            meta["shard_id"] = self.shard_id
        if self.iter_index is not None:
            meta["iter_index"] = self.iter_index
        if self.iter_key is not None:
            meta["iter_key"] = self.iter_key
        context: dict[str, Json] = {
            "cursor": self.cursor,
        }
        if self.ctx is not None:
            context["ctx"] = self.ctx
        if self.ctx_elsewhere is not None:
            context["ctx_elsewhere"] = [*self.ctx_elsewhere]
        if self.vars is not None:
            context["vars"] = self.vars
        return {
            "type": "frame.dispatched",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_FrameDispatched = unfrozen(FrameDispatched)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameClaimed:
    """One worker holds the frame for the duration of a lease."""

    TYPE: ClassVar[Literal["frame.claimed"]] = "frame.claimed"
    node_name: str
    frame_id: int
    stage_id: int
    attempt: int
    worker: str
    lease_seconds: int

    @classmethod
    def read(cls, event: EventFields) -> FrameClaimed:
        """Return the fields of a frame.claimed."""
        meta = event.meta
        new = object.__new__(_FrameClaimed)
        new.node_name = event.node_name or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.lease_seconds = int(meta["lease_seconds"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.claimed."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "attempt": self.attempt,
            "worker": self.worker,
            "lease_seconds": self.lease_seconds,
        }
        return {
            "type": "frame.claimed",
            "meta": meta,
            "node_name": self.node_name,
        }


_FrameClaimed = unfrozen(FrameClaimed)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameHeartbeat:
    """The owner renewed its lease; with a cursor it is a checkpoint, whose rows count and
    whose output is durable.
    """

    TYPE: ClassVar[Literal["frame.heartbeat"]] = "frame.heartbeat"
    node_name: str
    frame_id: int
    stage_id: int
    attempt: int
    worker: str
    lease_seconds: int
    loop_id: int | None = None
    rows: int | None = None
    failed_rows: int | None = None
    cursor: dict[str, Json] | None = None
    retries: int | None = None
    saved: dict[str, Json] | None = None
    errors: list[dict[str, Json]] | None = None
    ctx: dict[str, Json] | None = None
    ctx_elsewhere: list[dict[str, Json]] | None = None
    vars: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> FrameHeartbeat:
        """Return the fields of a frame.heartbeat."""
        meta = event.meta
        context = fields_of(event.context)
        result = fields_of(event.result)
        new = object.__new__(_FrameHeartbeat)
        new.node_name = event.node_name or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.lease_seconds = int(meta["lease_seconds"])
        new.loop_id = maybe_int(meta, "loop_id")
        new.rows = maybe_int(meta, "rows")
        new.failed_rows = maybe_int(meta, "failed_rows")
        new.cursor = object_of(context.get("cursor"))
        new.retries = int_of(result.get("retries"))
        new.saved = object_of(result.get("saved"))
        new.errors = objects_of(result.get("errors"))
        new.ctx = object_of(result.get("ctx"))
        new.ctx_elsewhere = objects_of(result.get("ctx_elsewhere"))
        new.vars = object_of(result.get("vars"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.heartbeat."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "attempt": self.attempt,
            "worker": self.worker,
            "lease_seconds": self.lease_seconds,
        }
        if self.loop_id is not None:
            meta["loop_id"] = str(self.loop_id)
        if self.rows is not None:
            meta["rows"] = self.rows
        if self.failed_rows is not None:
            meta["failed_rows"] = self.failed_rows
        context: dict[str, Json] = {}
        if self.cursor is not None:
            context["cursor"] = self.cursor
        result: dict[str, Json] = {}
        if self.retries is not None:
            result["retries"] = self.retries
        if self.saved is not None:
            result["saved"] = self.saved
        if self.errors is not None:
            result["errors"] = [*self.errors]
        if self.ctx is not None:
            result["ctx"] = self.ctx
        if self.ctx_elsewhere is not None:
            result["ctx_elsewhere"] = [*self.ctx_elsewhere]
        if self.vars is not None:
            result["vars"] = self.vars
        return {
            "type": "frame.heartbeat",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "context": context or None,
            "result": result or None,
        }


_FrameHeartbeat = unfrozen(FrameHeartbeat)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameCommitted:
    """The frame's rows are saved and its output is durable."""

    TYPE: ClassVar[Literal["frame.committed"]] = "frame.committed"
    node_name: str
    status: str
    frame_id: int
    stage_id: int
    loop_id: int
    attempt: int
    worker: str
    rows: int
    failed_rows: int
    continues: bool
    shard_id: str | None = None
    command_id: int | None = None
    cursor: dict[str, Json] | None = None
    retries: int | None = None
    saved: dict[str, Json] | None = None
    exhausted: bool | None = None
    errors: list[dict[str, Json]] | None = None
    ctx: dict[str, Json] | None = None
    ctx_elsewhere: list[dict[str, Json]] | None = None
    vars: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> FrameCommitted:
        """Return the fields of a frame.committed."""
        meta = event.meta
        context = fields_of(event.context)
        result = fields_of(event.result)
        new = object.__new__(_FrameCommitted)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.loop_id = int(meta["loop_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.rows = int(meta["rows"])
        new.failed_rows = int(meta["failed_rows"])
        new.continues = bool(meta["continues"])
        new.shard_id = maybe_str(meta, "shard_id")
        new.command_id = maybe_int(meta, "command_id")
        new.cursor = object_of(context.get("cursor"))
        new.retries = int_of(result.get("retries"))
        new.saved = object_of(result.get("saved"))
        new.exhausted = bool_of(result.get("exhausted"))
        new.errors = objects_of(result.get("errors"))
        new.ctx = object_of(result.get("ctx"))
        new.ctx_elsewhere = objects_of(result.get("ctx_elsewhere"))
        new.vars = object_of(result.get("vars"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.committed."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "loop_id": str(self.loop_id),
            "attempt": self.attempt,
            "worker": self.worker,
            "rows": self.rows,
            "failed_rows": self.failed_rows,
            "continues": self.continues,
        }
        if self.shard_id is not None:
            meta["shard_id"] = self.shard_id
        if self.command_id is not None:
            meta["command_id"] = str(self.command_id)
        context: dict[str, Json] = {}
        if self.cursor is not None:
            context["cursor"] = self.cursor
        result: dict[str, Json] = {}
        if self.retries is not None:
            result["retries"] = self.retries
        if self.saved is not None:
            result["saved"] = self.saved
        if self.exhausted is not None:
            result["exhausted"] = self.exhausted
        if self.errors is not None:
            result["errors"] = [*self.errors]
        if self.ctx is not None:
            result["ctx"] = self.ctx
        if self.ctx_elsewhere is not None:
            result["ctx_elsewhere"] = [*self.ctx_elsewhere]
        if self.vars is not None:
            result["vars"] = self.vars
        return {
            "type": "frame.committed",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "payload_ref": self.payload_ref,
            "context": context or None,
            "result": result or None,
        }


_FrameCommitted = unfrozen(FrameCommitted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFailed:
    """An attempt failed; the planner dispatches the frame again or abandons it."""

    TYPE: ClassVar[Literal["frame.failed"]] = "frame.failed"
    node_name: str
    status: str
    error: str
    frame_id: int
    stage_id: int
    loop_id: int
    attempt: int
    worker: str
    rows: int
    failed_rows: int
    shard_id: str | None = None
    command_id: int | None = None
    cursor: dict[str, Json] | None = None
    exhausted: bool | None = None
    errors: list[dict[str, Json]] | None = None
    ctx: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> FrameFailed:
        """Return the fields of a frame.failed."""
        meta = event.meta
        context = fields_of(event.context)
        result = fields_of(event.result)
        new = object.__new__(_FrameFailed)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.error = event.error or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.loop_id = int(meta["loop_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.rows = int(meta["rows"])
        new.failed_rows = int(meta["failed_rows"])
        new.shard_id = maybe_str(meta, "shard_id")
        new.command_id = maybe_int(meta, "command_id")
        new.cursor = object_of(context.get("cursor"))
        new.exhausted = bool_of(result.get("exhausted"))
        new.errors = objects_of(result.get("errors"))
        new.ctx = object_of(result.get("ctx"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.failed."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "loop_id": str(self.loop_id),
            "attempt": self.attempt,
            "worker": self.worker,
            "rows": self.rows,
            "failed_rows": self.failed_rows,
        }
        if self.shard_id is not None:
            meta["shard_id"] = self.shard_id
        if self.command_id is not None:
            meta["command_id"] = str(self.command_id)
        context: dict[str, Json] = {}
        if self.cursor is not None:
            context["cursor"] = self.cursor
        result: dict[str, Json] = {}
        if self.exhausted is not None:
            result["exhausted"] = self.exhausted
        if self.errors is not None:
            result["errors"] = [*self.errors]
        if self.ctx is not None:
            result["ctx"] = self.ctx
        return {
            "type": "frame.failed",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "context": context or None,
            "result": result or None,
        }


_FrameFailed = unfrozen(FrameFailed)


FrameLeaseExpiredReason: TypeAlias = Literal["expired", "restarted"]
_FRAME_LEASE_EXPIRED_REASON: dict[Routing, FrameLeaseExpiredReason] = {
    "expired": "expired",
    "restarted": "restarted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLeaseExpired:
    """The owner's lease expired, or its worker restarted; the frame is dispatched again."""

    TYPE: ClassVar[Literal["frame.lease_expired"]] = "frame.lease_expired"
    node_name: str
    frame_id: int
    stage_id: int
    attempt: int
    worker: str
    reason: FrameLeaseExpiredReason

    @classmethod
    def read(cls, event: EventFields) -> FrameLeaseExpired:
        """Return the fields of a frame.lease_expired."""
        meta = event.meta
        new = object.__new__(_FrameLeaseExpired)
        new.node_name = event.node_name or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.reason = _FRAME_LEASE_EXPIRED_REASON[meta["reason"]]
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.lease_expired."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "attempt": self.attempt,
            "worker": self.worker,
            "reason": self.reason,
        }
        return {
            "type": "frame.lease_expired",
            "meta": meta,
            "node_name": self.node_name,
        }


_FrameLeaseExpired = unfrozen(FrameLeaseExpired)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameReleased:
    """A worker that is shutting down returned the frame."""

    TYPE: ClassVar[Literal["frame.released"]] = "frame.released"
    node_name: str
    frame_id: int
    stage_id: int
    attempt: int
    worker: str
    cursor: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> FrameReleased:
        """Return the fields of a frame.released."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_FrameReleased)
        new.node_name = event.node_name or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.attempt = int(meta["attempt"])
        new.worker = str(meta["worker"])
        new.cursor = object_of(context.get("cursor"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.released."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "attempt": self.attempt,
            "worker": self.worker,
        }
        context: dict[str, Json] = {}
        if self.cursor is not None:
            context["cursor"] = self.cursor
        return {
            "type": "frame.released",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_FrameReleased = unfrozen(FrameReleased)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameAbandoned:
    """The frame failed `frames.max_attempts` times."""

    TYPE: ClassVar[Literal["frame.abandoned"]] = "frame.abandoned"
    node_name: str
    status: str
    frame_id: int
    stage_id: int
    loop_id: int
    attempt: int
    shard_id: str | None = None
    command_id: int | None = None
    error: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> FrameAbandoned:
        """Return the fields of a frame.abandoned."""
        meta = event.meta
        new = object.__new__(_FrameAbandoned)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.frame_id = int(meta["frame_id"])
        new.stage_id = int(meta["stage_id"])
        new.loop_id = int(meta["loop_id"])
        new.attempt = int(meta["attempt"])
        new.shard_id = maybe_str(meta, "shard_id")
        new.command_id = maybe_int(meta, "command_id")
        new.error = event.error
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a frame.abandoned."""
        meta: dict[str, Routing] = {
            "frame_id": str(self.frame_id),
            "stage_id": str(self.stage_id),
            "loop_id": str(self.loop_id),
            "attempt": self.attempt,
        }
        if self.shard_id is not None:
            meta["shard_id"] = self.shard_id
        if self.command_id is not None:
            meta["command_id"] = str(self.command_id)
        return {
            "type": "frame.abandoned",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
        }


_FrameAbandoned = unfrozen(FrameAbandoned)


LoopStartedMode: TypeAlias = Literal["sequential", "parallel", "cursor", "fanout", "reduce"]
_LOOP_STARTED_MODE: dict[Routing, LoopStartedMode] = {
    "sequential": "sequential",
    "parallel": "parallel",
    "cursor": "cursor",
    "fanout": "fanout",
    "reduce": "reduce",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStarted:
    """A loop step was activated; each activation has its own loop_id."""

    TYPE: ClassVar[Literal["loop.started"]] = "loop.started"
    node_name: str
    node_type: str
    status: str
    loop_id: int
    mode: LoopStartedMode
    collection_size: int | None = None
    collection_ref: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> LoopStarted:
        """Return the fields of a loop.started."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_LoopStarted)
        new.node_name = event.node_name or ""
        new.node_type = event.node_type or ""
        new.status = event.status or ""
        new.loop_id = int(meta["loop_id"])
        new.mode = _LOOP_STARTED_MODE[meta["mode"]]
        new.collection_size = maybe_int(meta, "collection_size")
        new.collection_ref = text_of(context.get("collection_ref"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.started."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
            "mode": self.mode,
        }
        if self.collection_size is not None:
            meta["collection_size"] = self.collection_size
        context: dict[str, Json] = {}
        if self.collection_ref is not None:
            context["collection_ref"] = self.collection_ref
        return {
            "type": "loop.started",
            "meta": meta,
            "node_name": self.node_name,
            "node_type": self.node_type,
            "status": self.status,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_LoopStarted = unfrozen(LoopStarted)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopItem:
    """One iteration was dispatched, as a frame of one row (frames of more rows do not
    write it).
    """

    TYPE: ClassVar[Literal["loop.item"]] = "loop.item"
    node_name: str
    status: str
    loop_id: int
    iter_index: int
    current_item: Json = None

    @classmethod
    def read(cls, event: EventFields) -> LoopItem:
        """Return the fields of a loop.item."""
        meta = event.meta
        new = object.__new__(_LoopItem)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.loop_id = int(meta["loop_id"])
        new.iter_index = int(meta["iter_index"])
        new.current_item = event.current_item
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.item."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
            "iter_index": self.iter_index,
        }
        return {
            "type": "loop.item",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "current_item": self.current_item,
        }


_LoopItem = unfrozen(LoopItem)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDone:
    """Every iteration has ended."""

    TYPE: ClassVar[Literal["loop.done"]] = "loop.done"
    node_name: str
    status: str
    loop_id: int
    result: LoopOutcome | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> LoopDone:
        """Return the fields of a loop.done."""
        meta = event.meta
        new = object.__new__(_LoopDone)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.loop_id = int(meta["loop_id"])
        new.result = shape_of(event.result, LoopOutcome)
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.done."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
        }
        return {
            "type": "loop.done",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "payload_ref": self.payload_ref,
            "result": json_of(self.result),
        }


_LoopDone = unfrozen(LoopDone)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFanoutStarted:
    """A fan-out started; its number of shards is known."""

    TYPE: ClassVar[Literal["loop.fanout.started"]] = "loop.fanout.started"
    node_name: str
    status: str
    loop_id: int
    total_shards: int
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> LoopFanoutStarted:
        """Return the fields of a loop.fanout.started."""
        meta = event.meta
        new = object.__new__(_LoopFanoutStarted)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.loop_id = int(meta["loop_id"])
        new.total_shards = int(meta["total_shards"])
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.fanout.started."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
            "total_shards": self.total_shards,
        }
        return {
            "type": "loop.fanout.started",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "payload_ref": self.payload_ref,
        }


_LoopFanoutStarted = unfrozen(LoopFanoutStarted)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopShardEnqueued:
    """A shard was queued (fan-outs with frames write frame.dispatched instead)."""

    TYPE: ClassVar[Literal["loop.shard.enqueued"]] = "loop.shard.enqueued"
    node_name: str
    loop_id: int
    shard_id: str
    iter_index: int
    iter_key: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> LoopShardEnqueued:
        """Return the fields of a loop.shard.enqueued."""
        meta = event.meta
        new = object.__new__(_LoopShardEnqueued)
        new.node_name = event.node_name or ""
        new.loop_id = int(meta["loop_id"])
        new.shard_id = str(meta["shard_id"])
        new.iter_index = int(meta["iter_index"])
        new.iter_key = maybe_str(meta, "iter_key")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.shard.enqueued."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
            "shard_id": self.shard_id,
            "iter_index": self.iter_index,
        }
        if self.iter_key is not None:
            meta["iter_key"] = self.iter_key
        return {
            "type": "loop.shard.enqueued",
            "meta": meta,
            "node_name": self.node_name,
        }


_LoopShardEnqueued = unfrozen(LoopShardEnqueued)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopShardDone:
    """A shard succeeded (fan-outs with frames write frame.committed instead)."""

    TYPE: ClassVar[Literal["loop.shard.done"]] = "loop.shard.done"
    node_name: str
    loop_id: int
    shard_id: str
    command_id: int
    result: Json = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> LoopShardDone:
        """Return the fields of a loop.shard.done."""
        meta = event.meta
        new = object.__new__(_LoopShardDone)
        new.node_name = event.node_name or ""
        new.loop_id = int(meta["loop_id"])
        new.shard_id = str(meta["shard_id"])
        new.command_id = int(meta["command_id"])
        new.result = event.result
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.shard.done."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
            "shard_id": self.shard_id,
            "command_id": str(self.command_id),
        }
        return {
            "type": "loop.shard.done",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "result": self.result,
        }


_LoopShardDone = unfrozen(LoopShardDone)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopShardFailed:
    """A shard failed (fan-outs with frames write frame.abandoned, or frame.committed with
    failed rows, instead).
    """

    TYPE: ClassVar[Literal["loop.shard.failed"]] = "loop.shard.failed"
    node_name: str
    error: str
    loop_id: int
    shard_id: str
    command_id: int
    result: Json = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> LoopShardFailed:
        """Return the fields of a loop.shard.failed."""
        meta = event.meta
        new = object.__new__(_LoopShardFailed)
        new.node_name = event.node_name or ""
        new.error = event.error or ""
        new.loop_id = int(meta["loop_id"])
        new.shard_id = str(meta["shard_id"])
        new.command_id = int(meta["command_id"])
        new.result = event.result
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.shard.failed."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
            "shard_id": self.shard_id,
            "command_id": str(self.command_id),
        }
        return {
            "type": "loop.shard.failed",
            "meta": meta,
            "node_name": self.node_name,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": self.result,
        }


_LoopShardFailed = unfrozen(LoopShardFailed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFaninCompleted:
    """Every shard has ended."""

    TYPE: ClassVar[Literal["loop.fanin.completed"]] = "loop.fanin.completed"
    node_name: str
    status: str
    loop_id: int
    result: FaninOutcome | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> LoopFaninCompleted:
        """Return the fields of a loop.fanin.completed."""
        meta = event.meta
        new = object.__new__(_LoopFaninCompleted)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.loop_id = int(meta["loop_id"])
        new.result = shape_of(event.result, FaninOutcome)
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a loop.fanin.completed."""
        meta: dict[str, Routing] = {
            "loop_id": str(self.loop_id),
        }
        return {
            "type": "loop.fanin.completed",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "payload_ref": self.payload_ref,
            "result": json_of(self.result),
        }


_LoopFaninCompleted = unfrozen(LoopFaninCompleted)


ResultStoredScope: TypeAlias = Literal["step", "execution", "workflow", "permanent"]
_RESULT_STORED_SCOPE: dict[Routing, ResultStoredScope] = {
    "step": "step",
    "execution": "execution",
    "workflow": "workflow",
    "permanent": "permanent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultStored:
    """A result was stored as a payload, outside the event of its task."""

    TYPE: ClassVar[Literal["result.stored"]] = "result.stored"
    node_name: str
    result_id: int
    store: str
    scope: ResultStoredScope
    task: str | None = None
    parent_result_id: int | None = None
    expires_at: str | None = None
    result: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> ResultStored:
        """Return the fields of a result.stored."""
        meta = event.meta
        new = object.__new__(_ResultStored)
        new.node_name = event.node_name or ""
        new.result_id = int(meta["result_id"])
        new.store = str(meta["store"])
        new.scope = _RESULT_STORED_SCOPE[meta["scope"]]
        new.task = maybe_str(meta, "task")
        new.parent_result_id = maybe_int(meta, "parent_result_id")
        new.expires_at = maybe_str(meta, "expires_at")
        new.result = object_of(event.result)
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a result.stored."""
        meta: dict[str, Routing] = {
            "result_id": str(self.result_id),
            "store": self.store,
            "scope": self.scope,
        }
        if self.task is not None:
            meta["task"] = self.task
        if self.parent_result_id is not None:
            meta["parent_result_id"] = str(self.parent_result_id)
        if self.expires_at is not None:
            meta["expires_at"] = self.expires_at
        return {
            "type": "result.stored",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "result": self.result,
        }


_ResultStored = unfrozen(ResultStored)


ResultExpiredReason: TypeAlias = Literal["ttl", "scope", "manual", "retention"]
_RESULT_EXPIRED_REASON: dict[Routing, ResultExpiredReason] = {
    "ttl": "ttl",
    "scope": "scope",
    "manual": "manual",
    "retention": "retention",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultExpired:
    """A stored result expired; its payload may be deleted."""

    TYPE: ClassVar[Literal["result.expired"]] = "result.expired"
    node_name: ClassVar[None] = None
    result_id: int
    reason: ResultExpiredReason

    @classmethod
    def read(cls, event: EventFields) -> ResultExpired:
        """Return the fields of a result.expired."""
        meta = event.meta
        new = object.__new__(_ResultExpired)
        new.result_id = int(meta["result_id"])
        new.reason = _RESULT_EXPIRED_REASON[meta["reason"]]
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a result.expired."""
        meta: dict[str, Routing] = {
            "result_id": str(self.result_id),
            "reason": self.reason,
        }
        return {
            "type": "result.expired",
            "meta": meta,
        }


_ResultExpired = unfrozen(ResultExpired)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySent:
    """The outcome was published to the trigger's reply topic, once."""

    TYPE: ClassVar[Literal["reply.sent"]] = "reply.sent"
    node_name: ClassVar[None] = None
    reply_to: str

    @classmethod
    def read(cls, event: EventFields) -> ReplySent:
        """Return the fields of a reply.sent."""
        meta = event.meta
        new = object.__new__(_ReplySent)
        new.reply_to = str(meta["reply_to"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a reply.sent."""
        meta: dict[str, Routing] = {
            "reply_to": self.reply_to,
        }
        return {
            "type": "reply.sent",
            "meta": meta,
        }


_ReplySent = unfrozen(ReplySent)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSubmitted:
    """Work was submitted to an external provider."""

    TYPE: ClassVar[Literal["provider.submitted"]] = "provider.submitted"
    node_name: str
    submission_id: int
    provider: str
    frame_id: int | None = None
    command_id: int | None = None
    context: Json = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> ProviderSubmitted:
        """Return the fields of a provider.submitted."""
        meta = event.meta
        new = object.__new__(_ProviderSubmitted)
        new.node_name = event.node_name or ""
        new.submission_id = int(meta["submission_id"])
        new.provider = str(meta["provider"])
        new.frame_id = maybe_int(meta, "frame_id")
        new.command_id = maybe_int(meta, "command_id")
        new.context = event.context
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a provider.submitted."""
        meta: dict[str, Routing] = {
            "submission_id": str(self.submission_id),
            "provider": self.provider,
        }
        if self.frame_id is not None:
            meta["frame_id"] = str(self.frame_id)
        if self.command_id is not None:
            meta["command_id"] = str(self.command_id)
        return {
            "type": "provider.submitted",
            "meta": meta,
            "node_name": self.node_name,
            "payload_ref": self.payload_ref,
            "context": self.context,
        }


_ProviderSubmitted = unfrozen(ProviderSubmitted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderObserved:
    """An external provider reported a state, by callback or poll."""

    TYPE: ClassVar[Literal["provider.observed"]] = "provider.observed"
    node_name: str
    status: str
    submission_id: int
    provider: str
    result: Json = None
    error: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> ProviderObserved:
        """Return the fields of a provider.observed."""
        meta = event.meta
        new = object.__new__(_ProviderObserved)
        new.node_name = event.node_name or ""
        new.status = event.status or ""
        new.submission_id = int(meta["submission_id"])
        new.provider = str(meta["provider"])
        new.result = event.result
        new.error = event.error
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a provider.observed."""
        meta: dict[str, Routing] = {
            "submission_id": str(self.submission_id),
            "provider": self.provider,
        }
        return {
            "type": "provider.observed",
            "meta": meta,
            "node_name": self.node_name,
            "status": self.status,
            "error": self.error,
            "payload_ref": self.payload_ref,
            "result": self.result,
        }


_ProviderObserved = unfrozen(ProviderObserved)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionCancelled:
    """The execution was cancelled."""

    TYPE: ClassVar[Literal["execution.cancelled"]] = "execution.cancelled"
    node_name: ClassVar[None] = None
    status: str
    by: str
    error: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> ExecutionCancelled:
        """Return the fields of a execution.cancelled."""
        meta = event.meta
        new = object.__new__(_ExecutionCancelled)
        new.status = event.status or ""
        new.by = str(meta["by"])
        new.error = event.error
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a execution.cancelled."""
        meta: dict[str, Routing] = {
            "by": self.by,
        }
        return {
            "type": "execution.cancelled",
            "meta": meta,
            "status": self.status,
            "error": self.error,
        }


_ExecutionCancelled = unfrozen(ExecutionCancelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSuspended:
    """Nothing new is dispatched until it is resumed; by an operator, or because handling
    it crashed the planner three times.
    """

    TYPE: ClassVar[Literal["execution.suspended"]] = "execution.suspended"
    node_name: ClassVar[None] = None
    by: str
    reason: str
    error: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> ExecutionSuspended:
        """Return the fields of a execution.suspended."""
        meta = event.meta
        new = object.__new__(_ExecutionSuspended)
        new.by = str(meta["by"])
        new.reason = str(meta["reason"])
        new.error = event.error
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a execution.suspended."""
        meta: dict[str, Routing] = {
            "by": self.by,
            "reason": self.reason,
        }
        return {
            "type": "execution.suspended",
            "meta": meta,
            "error": self.error,
        }


_ExecutionSuspended = unfrozen(ExecutionSuspended)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResumed:
    """A suspended execution continues."""

    TYPE: ClassVar[Literal["execution.resumed"]] = "execution.resumed"
    node_name: ClassVar[None] = None
    by: str

    @classmethod
    def read(cls, event: EventFields) -> ExecutionResumed:
        """Return the fields of a execution.resumed."""
        meta = event.meta
        new = object.__new__(_ExecutionResumed)
        new.by = str(meta["by"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a execution.resumed."""
        meta: dict[str, Routing] = {
            "by": self.by,
        }
        return {
            "type": "execution.resumed",
            "meta": meta,
        }


_ExecutionResumed = unfrozen(ExecutionResumed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionForked:
    """An execution began with the state of another one at a position; follows
    playbook.initialized, in as many parts as that names.
    """

    TYPE: ClassVar[Literal["execution.forked"]] = "execution.forked"
    node_name: ClassVar[None] = None
    source_execution_id: int
    source_position: int
    source_chain: str
    state_checksum: str
    part: int
    by: str
    overrides: dict[str, Json] | None = None
    ctx: dict[str, Json] | None = None
    ctx_elsewhere: list[dict[str, Json]] | None = None
    results: dict[str, Json] | None = None
    visits: dict[str, Json] | None = None
    activations: list[dict[str, Json]] | None = None
    setbacks: dict[str, Json] | None = None
    last_step: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> ExecutionForked:
        """Return the fields of a execution.forked."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_ExecutionForked)
        new.source_execution_id = int(meta["source_execution_id"])
        new.source_position = int(meta["source_position"])
        new.source_chain = str(meta["source_chain"])
        new.state_checksum = str(meta["state_checksum"])
        new.part = int(meta["part"])
        new.by = str(meta["by"])
        new.overrides = object_of(context.get("overrides"))
        new.ctx = object_of(context.get("ctx"))
        new.ctx_elsewhere = objects_of(context.get("ctx_elsewhere"))
        new.results = object_of(context.get("results"))
        new.visits = object_of(context.get("visits"))
        new.activations = objects_of(context.get("activations"))
        new.setbacks = object_of(context.get("setbacks"))
        new.last_step = text_of(context.get("last_step"))
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a execution.forked."""
        meta: dict[str, Routing] = {
            "source_execution_id": str(self.source_execution_id),
            "source_position": self.source_position,
            "source_chain": self.source_chain,
            "state_checksum": self.state_checksum,
            "part": self.part,
            "by": self.by,
        }
        context: dict[str, Json] = {}
        if self.overrides is not None:
            context["overrides"] = self.overrides
        if self.ctx is not None:
            context["ctx"] = self.ctx
        if self.ctx_elsewhere is not None:
            context["ctx_elsewhere"] = [*self.ctx_elsewhere]
        if self.results is not None:
            context["results"] = self.results
        if self.visits is not None:
            context["visits"] = self.visits
        if self.activations is not None:
            context["activations"] = [*self.activations]
        if self.setbacks is not None:
            context["setbacks"] = self.setbacks
        if self.last_step is not None:
            context["last_step"] = self.last_step
        return {
            "type": "execution.forked",
            "meta": meta,
            "context": context or None,
        }


_ExecutionForked = unfrozen(ExecutionForked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionCheckpointed:
    """The folded state up to a barrier was stored."""

    TYPE: ClassVar[Literal["execution.checkpointed"]] = "execution.checkpointed"
    node_name: ClassVar[None] = None
    barrier: int
    through_seq: int
    checksum: str
    payload_ref: PayloadRef

    @classmethod
    def read(cls, event: EventFields) -> ExecutionCheckpointed:
        """Return the fields of a execution.checkpointed."""
        meta = event.meta
        new = object.__new__(_ExecutionCheckpointed)
        new.barrier = int(meta["barrier"])
        new.through_seq = int(meta["through_seq"])
        new.checksum = str(meta["checksum"])
        new.payload_ref = payload_of(event)
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a execution.checkpointed."""
        meta: dict[str, Routing] = {
            "barrier": self.barrier,
            "through_seq": self.through_seq,
            "checksum": self.checksum,
        }
        return {
            "type": "execution.checkpointed",
            "meta": meta,
            "payload_ref": self.payload_ref,
        }


_ExecutionCheckpointed = unfrozen(ExecutionCheckpointed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDeadLettered:
    """A record of this execution cannot be processed and is a dead letter."""

    TYPE: ClassVar[Literal["execution.dead_lettered"]] = "execution.dead_lettered"
    node_name: ClassVar[None] = None
    error: str
    topic: str
    partition: int
    offset: int
    dead_letter_id: int
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> ExecutionDeadLettered:
        """Return the fields of a execution.dead_lettered."""
        meta = event.meta
        new = object.__new__(_ExecutionDeadLettered)
        new.error = event.error or ""
        new.topic = str(meta["topic"])
        new.partition = int(meta["partition"])
        new.offset = int(meta["offset"])
        new.dead_letter_id = int(meta["dead_letter_id"])
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a execution.dead_lettered."""
        meta: dict[str, Routing] = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "dead_letter_id": str(self.dead_letter_id),
        }
        return {
            "type": "execution.dead_lettered",
            "meta": meta,
            "error": self.error,
            "payload_ref": self.payload_ref,
        }


_ExecutionDeadLettered = unfrozen(ExecutionDeadLettered)


RedriveRequestedScope: TypeAlias = Literal["rows", "frames", "step", "execution"]
_REDRIVE_REQUESTED_SCOPE: dict[Routing, RedriveRequestedScope] = {
    "rows": "rows",
    "frames": "frames",
    "step": "step",
    "execution": "execution",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveRequested:
    """An operator asked to run the failed parts of an execution again."""

    TYPE: ClassVar[Literal["redrive.requested"]] = "redrive.requested"
    node_name: ClassVar[None] = None
    redrive_id: int
    by: str
    scope: RedriveRequestedScope
    context: Json = None

    @classmethod
    def read(cls, event: EventFields) -> RedriveRequested:
        """Return the fields of a redrive.requested."""
        meta = event.meta
        new = object.__new__(_RedriveRequested)
        new.redrive_id = int(meta["redrive_id"])
        new.by = str(meta["by"])
        new.scope = _REDRIVE_REQUESTED_SCOPE[meta["scope"]]
        new.context = event.context
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a redrive.requested."""
        meta: dict[str, Routing] = {
            "redrive_id": str(self.redrive_id),
            "by": self.by,
            "scope": self.scope,
        }
        return {
            "type": "redrive.requested",
            "meta": meta,
            "context": self.context,
        }


_RedriveRequested = unfrozen(RedriveRequested)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveCompleted:
    """A requested redrive ended."""

    TYPE: ClassVar[Literal["redrive.completed"]] = "redrive.completed"
    node_name: ClassVar[None] = None
    status: str
    redrive_id: int
    rows: int
    failed_rows: int

    @classmethod
    def read(cls, event: EventFields) -> RedriveCompleted:
        """Return the fields of a redrive.completed."""
        meta = event.meta
        new = object.__new__(_RedriveCompleted)
        new.status = event.status or ""
        new.redrive_id = int(meta["redrive_id"])
        new.rows = int(meta["rows"])
        new.failed_rows = int(meta["failed_rows"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a redrive.completed."""
        meta: dict[str, Routing] = {
            "redrive_id": str(self.redrive_id),
            "rows": self.rows,
            "failed_rows": self.failed_rows,
        }
        return {
            "type": "redrive.completed",
            "meta": meta,
            "status": self.status,
        }


_RedriveCompleted = unfrozen(RedriveCompleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRejected:
    """A trigger record cannot start an execution and is a dead letter."""

    TYPE: ClassVar[Literal["trigger.rejected"]] = "trigger.rejected"
    node_name: ClassVar[None] = None
    error: str
    topic: str
    topic_id: str
    partition: int
    offset: int
    subscription: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> TriggerRejected:
        """Return the fields of a trigger.rejected."""
        meta = event.meta
        new = object.__new__(_TriggerRejected)
        new.error = event.error or ""
        new.topic = str(meta["topic"])
        new.topic_id = str(meta["topic_id"])
        new.partition = int(meta["partition"])
        new.offset = int(meta["offset"])
        new.subscription = maybe_str(meta, "subscription")
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a trigger.rejected."""
        meta: dict[str, Routing] = {
            "topic": self.topic,
            "topic_id": self.topic_id,
            "partition": self.partition,
            "offset": self.offset,
        }
        if self.subscription is not None:
            meta["subscription"] = self.subscription
        return {
            "type": "trigger.rejected",
            "meta": meta,
            "error": self.error,
            "payload_ref": self.payload_ref,
        }


_TriggerRejected = unfrozen(TriggerRejected)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRedriven:
    """An operator submitted a rejected trigger again."""

    TYPE: ClassVar[Literal["trigger.redriven"]] = "trigger.redriven"
    node_name: ClassVar[None] = None
    by: str
    started_execution_id: int | None = None

    @classmethod
    def read(cls, event: EventFields) -> TriggerRedriven:
        """Return the fields of a trigger.redriven."""
        meta = event.meta
        new = object.__new__(_TriggerRedriven)
        new.by = str(meta["by"])
        new.started_execution_id = maybe_int(meta, "started_execution_id")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a trigger.redriven."""
        meta: dict[str, Routing] = {
            "by": self.by,
        }
        if self.started_execution_id is not None:
            meta["started_execution_id"] = str(self.started_execution_id)
        return {
            "type": "trigger.redriven",
            "meta": meta,
        }


_TriggerRedriven = unfrozen(TriggerRedriven)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDiscarded:
    """An operator discarded a rejected trigger."""

    TYPE: ClassVar[Literal["trigger.discarded"]] = "trigger.discarded"
    node_name: ClassVar[None] = None
    by: str

    @classmethod
    def read(cls, event: EventFields) -> TriggerDiscarded:
        """Return the fields of a trigger.discarded."""
        meta = event.meta
        new = object.__new__(_TriggerDiscarded)
        new.by = str(meta["by"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a trigger.discarded."""
        meta: dict[str, Routing] = {
            "by": self.by,
        }
        return {
            "type": "trigger.discarded",
            "meta": meta,
        }


_TriggerDiscarded = unfrozen(TriggerDiscarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRegistered:
    """A new version of a resource was registered."""

    TYPE: ClassVar[Literal["catalog.registered"]] = "catalog.registered"
    node_name: ClassVar[None] = None
    path: str
    version: int
    kind: str
    content_sha256: str
    by: str | None = None
    credential: str | None = None
    content: str | None = None
    payload_ref: PayloadRef | None = None

    @classmethod
    def read(cls, event: EventFields) -> CatalogRegistered:
        """Return the fields of a catalog.registered."""
        meta = event.meta
        context = fields_of(event.context)
        new = object.__new__(_CatalogRegistered)
        new.path = str(meta["path"])
        new.version = int(meta["version"])
        new.kind = str(meta["kind"])
        new.content_sha256 = str(meta["content_sha256"])
        new.by = maybe_str(meta, "by")
        new.credential = maybe_str(meta, "credential")
        new.content = text_of(context.get("content"))
        new.payload_ref = event.payload_ref
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a catalog.registered."""
        meta: dict[str, Routing] = {
            "path": self.path,
            "version": self.version,
            "kind": self.kind,
            "content_sha256": self.content_sha256,
        }
        if self.by is not None:
            meta["by"] = self.by
        if self.credential is not None:
            meta["credential"] = self.credential
        context: dict[str, Json] = {}
        if self.content is not None:
            context["content"] = self.content
        return {
            "type": "catalog.registered",
            "meta": meta,
            "payload_ref": self.payload_ref,
            "context": context or None,
        }


_CatalogRegistered = unfrozen(CatalogRegistered)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRetired:
    """A version can no longer be started."""

    TYPE: ClassVar[Literal["catalog.retired"]] = "catalog.retired"
    node_name: ClassVar[None] = None
    path: str
    version: int
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> CatalogRetired:
        """Return the fields of a catalog.retired."""
        meta = event.meta
        new = object.__new__(_CatalogRetired)
        new.path = str(meta["path"])
        new.version = int(meta["version"])
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a catalog.retired."""
        meta: dict[str, Routing] = {
            "path": self.path,
            "version": self.version,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "catalog.retired",
            "meta": meta,
        }


_CatalogRetired = unfrozen(CatalogRetired)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPaused:
    """Its messages start nothing until it is resumed."""

    TYPE: ClassVar[Literal["subscription.paused"]] = "subscription.paused"
    node_name: ClassVar[None] = None
    path: str
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> SubscriptionPaused:
        """Return the fields of a subscription.paused."""
        meta = event.meta
        new = object.__new__(_SubscriptionPaused)
        new.path = str(meta["path"])
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a subscription.paused."""
        meta: dict[str, Routing] = {
            "path": self.path,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "subscription.paused",
            "meta": meta,
        }


_SubscriptionPaused = unfrozen(SubscriptionPaused)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionResumed:
    """Its messages start executions again, from where it was paused."""

    TYPE: ClassVar[Literal["subscription.resumed"]] = "subscription.resumed"
    node_name: ClassVar[None] = None
    path: str
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> SubscriptionResumed:
        """Return the fields of a subscription.resumed."""
        meta = event.meta
        new = object.__new__(_SubscriptionResumed)
        new.path = str(meta["path"])
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a subscription.resumed."""
        meta: dict[str, Routing] = {
            "path": self.path,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "subscription.resumed",
            "meta": meta,
        }


_SubscriptionResumed = unfrozen(SubscriptionResumed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionReplayed:
    """An operator had a range of its records start executions again."""

    TYPE: ClassVar[Literal["subscription.replayed"]] = "subscription.replayed"
    node_name: ClassVar[None] = None
    path: str
    replay: int
    topic: str
    topic_id: str
    partition: int
    from_offset: int
    until_offset: int
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> SubscriptionReplayed:
        """Return the fields of a subscription.replayed."""
        meta = event.meta
        new = object.__new__(_SubscriptionReplayed)
        new.path = str(meta["path"])
        new.replay = int(meta["replay"])
        new.topic = str(meta["topic"])
        new.topic_id = str(meta["topic_id"])
        new.partition = int(meta["partition"])
        new.from_offset = int(meta["from_offset"])
        new.until_offset = int(meta["until_offset"])
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a subscription.replayed."""
        meta: dict[str, Routing] = {
            "path": self.path,
            "replay": self.replay,
            "topic": self.topic,
            "topic_id": self.topic_id,
            "partition": self.partition,
            "from_offset": self.from_offset,
            "until_offset": self.until_offset,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "subscription.replayed",
            "meta": meta,
        }


_SubscriptionReplayed = unfrozen(SubscriptionReplayed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCreated:
    """A recurring trigger was created."""

    TYPE: ClassVar[Literal["schedule.created"]] = "schedule.created"
    node_name: ClassVar[None] = None
    name: str
    path: str
    rule: str
    timezone: str
    by: str | None = None
    context: Json = None

    @classmethod
    def read(cls, event: EventFields) -> ScheduleCreated:
        """Return the fields of a schedule.created."""
        meta = event.meta
        new = object.__new__(_ScheduleCreated)
        new.name = str(meta["name"])
        new.path = str(meta["path"])
        new.rule = str(meta["rule"])
        new.timezone = str(meta["timezone"])
        new.by = maybe_str(meta, "by")
        new.context = event.context
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a schedule.created."""
        meta: dict[str, Routing] = {
            "name": self.name,
            "path": self.path,
            "rule": self.rule,
            "timezone": self.timezone,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "schedule.created",
            "meta": meta,
            "context": self.context,
        }


_ScheduleCreated = unfrozen(ScheduleCreated)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChanged:
    """Its rule, target or inputs changed."""

    TYPE: ClassVar[Literal["schedule.changed"]] = "schedule.changed"
    node_name: ClassVar[None] = None
    name: str
    path: str
    rule: str
    timezone: str
    by: str | None = None
    context: Json = None

    @classmethod
    def read(cls, event: EventFields) -> ScheduleChanged:
        """Return the fields of a schedule.changed."""
        meta = event.meta
        new = object.__new__(_ScheduleChanged)
        new.name = str(meta["name"])
        new.path = str(meta["path"])
        new.rule = str(meta["rule"])
        new.timezone = str(meta["timezone"])
        new.by = maybe_str(meta, "by")
        new.context = event.context
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a schedule.changed."""
        meta: dict[str, Routing] = {
            "name": self.name,
            "path": self.path,
            "rule": self.rule,
            "timezone": self.timezone,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "schedule.changed",
            "meta": meta,
            "context": self.context,
        }


_ScheduleChanged = unfrozen(ScheduleChanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFired:
    """One scheduled time started one execution."""

    TYPE: ClassVar[Literal["schedule.fired"]] = "schedule.fired"
    node_name: ClassVar[None] = None
    fire_time: str
    started_execution_id: int

    @classmethod
    def read(cls, event: EventFields) -> ScheduleFired:
        """Return the fields of a schedule.fired."""
        meta = event.meta
        new = object.__new__(_ScheduleFired)
        new.fire_time = str(meta["fire_time"])
        new.started_execution_id = int(meta["started_execution_id"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a schedule.fired."""
        meta: dict[str, Routing] = {
            "fire_time": self.fire_time,
            "started_execution_id": str(self.started_execution_id),
        }
        return {
            "type": "schedule.fired",
            "meta": meta,
        }


_ScheduleFired = unfrozen(ScheduleFired)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSkipped:
    """One scheduled time was skipped, with the reason."""

    TYPE: ClassVar[Literal["schedule.skipped"]] = "schedule.skipped"
    node_name: ClassVar[None] = None
    fire_time: str
    reason: str

    @classmethod
    def read(cls, event: EventFields) -> ScheduleSkipped:
        """Return the fields of a schedule.skipped."""
        meta = event.meta
        new = object.__new__(_ScheduleSkipped)
        new.fire_time = str(meta["fire_time"])
        new.reason = str(meta["reason"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a schedule.skipped."""
        meta: dict[str, Routing] = {
            "fire_time": self.fire_time,
            "reason": self.reason,
        }
        return {
            "type": "schedule.skipped",
            "meta": meta,
        }


_ScheduleSkipped = unfrozen(ScheduleSkipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePaused:
    """It does not fire until resumed."""

    TYPE: ClassVar[Literal["schedule.paused"]] = "schedule.paused"
    node_name: ClassVar[None] = None
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> SchedulePaused:
        """Return the fields of a schedule.paused."""
        meta = event.meta
        new = object.__new__(_SchedulePaused)
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a schedule.paused."""
        meta: dict[str, Routing] = {}
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "schedule.paused",
            "meta": meta,
        }


_SchedulePaused = unfrozen(SchedulePaused)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResumed:
    """It fires again."""

    TYPE: ClassVar[Literal["schedule.resumed"]] = "schedule.resumed"
    node_name: ClassVar[None] = None
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> ScheduleResumed:
        """Return the fields of a schedule.resumed."""
        meta = event.meta
        new = object.__new__(_ScheduleResumed)
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a schedule.resumed."""
        meta: dict[str, Routing] = {}
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "schedule.resumed",
            "meta": meta,
        }


_ScheduleResumed = unfrozen(ScheduleResumed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRemoved:
    """The schedule was deleted."""

    TYPE: ClassVar[Literal["schedule.removed"]] = "schedule.removed"
    node_name: ClassVar[None] = None
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> ScheduleRemoved:
        """Return the fields of a schedule.removed."""
        meta = event.meta
        new = object.__new__(_ScheduleRemoved)
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a schedule.removed."""
        meta: dict[str, Routing] = {}
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "schedule.removed",
            "meta": meta,
        }


_ScheduleRemoved = unfrozen(ScheduleRemoved)


TenantCreatedIsolation: TypeAlias = Literal["shared", "schema", "database"]
_TENANT_CREATED_ISOLATION: dict[Routing, TenantCreatedIsolation] = {
    "shared": "shared",
    "schema": "schema",
    "database": "database",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantCreated:
    """A tenant was created."""

    TYPE: ClassVar[Literal["tenant.created"]] = "tenant.created"
    node_name: ClassVar[None] = None
    tenant: str
    isolation: TenantCreatedIsolation
    context: Json = None

    @classmethod
    def read(cls, event: EventFields) -> TenantCreated:
        """Return the fields of a tenant.created."""
        meta = event.meta
        new = object.__new__(_TenantCreated)
        new.tenant = str(meta["tenant"])
        new.isolation = _TENANT_CREATED_ISOLATION[meta["isolation"]]
        new.context = event.context
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a tenant.created."""
        meta: dict[str, Routing] = {
            "tenant": self.tenant,
            "isolation": self.isolation,
        }
        return {
            "type": "tenant.created",
            "meta": meta,
            "context": self.context,
        }


_TenantCreated = unfrozen(TenantCreated)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantChanged:
    """Its limits, retention or isolation changed."""

    TYPE: ClassVar[Literal["tenant.changed"]] = "tenant.changed"
    node_name: ClassVar[None] = None
    tenant: str
    context: Json = None

    @classmethod
    def read(cls, event: EventFields) -> TenantChanged:
        """Return the fields of a tenant.changed."""
        meta = event.meta
        new = object.__new__(_TenantChanged)
        new.tenant = str(meta["tenant"])
        new.context = event.context
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a tenant.changed."""
        meta: dict[str, Routing] = {
            "tenant": self.tenant,
        }
        return {
            "type": "tenant.changed",
            "meta": meta,
            "context": self.context,
        }


_TenantChanged = unfrozen(TenantChanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantKeyRotated:
    """New data is encrypted with a new key."""

    TYPE: ClassVar[Literal["tenant.key_rotated"]] = "tenant.key_rotated"
    node_name: ClassVar[None] = None
    tenant: str
    key_id: str

    @classmethod
    def read(cls, event: EventFields) -> TenantKeyRotated:
        """Return the fields of a tenant.key_rotated."""
        meta = event.meta
        new = object.__new__(_TenantKeyRotated)
        new.tenant = str(meta["tenant"])
        new.key_id = str(meta["key_id"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a tenant.key_rotated."""
        meta: dict[str, Routing] = {
            "tenant": self.tenant,
            "key_id": self.key_id,
        }
        return {
            "type": "tenant.key_rotated",
            "meta": meta,
        }


_TenantKeyRotated = unfrozen(TenantKeyRotated)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantKeyDestroyed:
    """A key was destroyed; data encrypted with it is unreadable."""

    TYPE: ClassVar[Literal["tenant.key_destroyed"]] = "tenant.key_destroyed"
    node_name: ClassVar[None] = None
    tenant: str
    key_id: str
    reason: str

    @classmethod
    def read(cls, event: EventFields) -> TenantKeyDestroyed:
        """Return the fields of a tenant.key_destroyed."""
        meta = event.meta
        new = object.__new__(_TenantKeyDestroyed)
        new.tenant = str(meta["tenant"])
        new.key_id = str(meta["key_id"])
        new.reason = str(meta["reason"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a tenant.key_destroyed."""
        meta: dict[str, Routing] = {
            "tenant": self.tenant,
            "key_id": self.key_id,
            "reason": self.reason,
        }
        return {
            "type": "tenant.key_destroyed",
            "meta": meta,
        }


_TenantKeyDestroyed = unfrozen(TenantKeyDestroyed)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSuspended:
    """It cannot start executions until resumed."""

    TYPE: ClassVar[Literal["tenant.suspended"]] = "tenant.suspended"
    node_name: ClassVar[None] = None
    tenant: str
    reason: str

    @classmethod
    def read(cls, event: EventFields) -> TenantSuspended:
        """Return the fields of a tenant.suspended."""
        meta = event.meta
        new = object.__new__(_TenantSuspended)
        new.tenant = str(meta["tenant"])
        new.reason = str(meta["reason"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a tenant.suspended."""
        meta: dict[str, Routing] = {
            "tenant": self.tenant,
            "reason": self.reason,
        }
        return {
            "type": "tenant.suspended",
            "meta": meta,
        }


_TenantSuspended = unfrozen(TenantSuspended)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantResumed:
    """It can start executions again."""

    TYPE: ClassVar[Literal["tenant.resumed"]] = "tenant.resumed"
    node_name: ClassVar[None] = None
    tenant: str

    @classmethod
    def read(cls, event: EventFields) -> TenantResumed:
        """Return the fields of a tenant.resumed."""
        meta = event.meta
        new = object.__new__(_TenantResumed)
        new.tenant = str(meta["tenant"])
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a tenant.resumed."""
        meta: dict[str, Routing] = {
            "tenant": self.tenant,
        }
        return {
            "type": "tenant.resumed",
            "meta": meta,
        }


_TenantResumed = unfrozen(TenantResumed)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationCreated:
    """An organization of a tenant was created."""

    TYPE: ClassVar[Literal["organization.created"]] = "organization.created"
    node_name: ClassVar[None] = None
    organization: str
    context: Json = None

    @classmethod
    def read(cls, event: EventFields) -> OrganizationCreated:
        """Return the fields of a organization.created."""
        meta = event.meta
        new = object.__new__(_OrganizationCreated)
        new.organization = str(meta["organization"])
        new.context = event.context
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a organization.created."""
        meta: dict[str, Routing] = {
            "organization": self.organization,
        }
        return {
            "type": "organization.created",
            "meta": meta,
            "context": self.context,
        }


_OrganizationCreated = unfrozen(OrganizationCreated)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationChanged:
    """Its limits or retention changed."""

    TYPE: ClassVar[Literal["organization.changed"]] = "organization.changed"
    node_name: ClassVar[None] = None
    organization: str
    context: Json = None

    @classmethod
    def read(cls, event: EventFields) -> OrganizationChanged:
        """Return the fields of a organization.changed."""
        meta = event.meta
        new = object.__new__(_OrganizationChanged)
        new.organization = str(meta["organization"])
        new.context = event.context
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a organization.changed."""
        meta: dict[str, Routing] = {
            "organization": self.organization,
        }
        return {
            "type": "organization.changed",
            "meta": meta,
            "context": self.context,
        }


_OrganizationChanged = unfrozen(OrganizationChanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialStored:
    """A credential was set; its values are only in noetl.credential, encrypted."""

    TYPE: ClassVar[Literal["credential.stored"]] = "credential.stored"
    node_name: ClassVar[None] = None
    name: str
    kind: str
    revision: int
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> CredentialStored:
        """Return the fields of a credential.stored."""
        meta = event.meta
        new = object.__new__(_CredentialStored)
        new.name = str(meta["name"])
        new.kind = str(meta["kind"])
        new.revision = int(meta["revision"])
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a credential.stored."""
        meta: dict[str, Routing] = {
            "name": self.name,
            "kind": self.kind,
            "revision": self.revision,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "credential.stored",
            "meta": meta,
        }


_CredentialStored = unfrozen(CredentialStored)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRemoved:
    """A credential was removed."""

    TYPE: ClassVar[Literal["credential.removed"]] = "credential.removed"
    node_name: ClassVar[None] = None
    name: str
    by: str | None = None

    @classmethod
    def read(cls, event: EventFields) -> CredentialRemoved:
        """Return the fields of a credential.removed."""
        meta = event.meta
        new = object.__new__(_CredentialRemoved)
        new.name = str(meta["name"])
        new.by = maybe_str(meta, "by")
        return freeze(new, cls)

    def columns(self) -> EventColumns:
        """Return what `NewEvent` takes for a credential.removed."""
        meta: dict[str, Routing] = {
            "name": self.name,
        }
        if self.by is not None:
            meta["by"] = self.by
        return {
            "type": "credential.removed",
            "meta": meta,
        }


_CredentialRemoved = unfrozen(CredentialRemoved)


AnyEvent: TypeAlias = (
    PlaybookInitialized
    | PlaybookCompleted
    | PlaybookFailed
    | WorkflowInitialized
    | WorkflowCompleted
    | WorkflowFailed
    | StepEnter
    | StepExit
    | CommandIssued
    | CommandClaimed
    | CommandStarted
    | CommandHeartbeat
    | CommandCompleted
    | CommandFailed
    | CommandLeaseExpired
    | CommandReleased
    | CommandCancelled
    | CallDone
    | CallError
    | StageOpened
    | StageClosed
    | FrameDispatched
    | FrameClaimed
    | FrameHeartbeat
    | FrameCommitted
    | FrameFailed
    | FrameLeaseExpired
    | FrameReleased
    | FrameAbandoned
    | LoopStarted
    | LoopItem
    | LoopDone
    | LoopFanoutStarted
    | LoopShardEnqueued
    | LoopShardDone
    | LoopShardFailed
    | LoopFaninCompleted
    | ResultStored
    | ResultExpired
    | ReplySent
    | ProviderSubmitted
    | ProviderObserved
    | ExecutionCancelled
    | ExecutionSuspended
    | ExecutionResumed
    | ExecutionForked
    | ExecutionCheckpointed
    | ExecutionDeadLettered
    | RedriveRequested
    | RedriveCompleted
    | TriggerRejected
    | TriggerRedriven
    | TriggerDiscarded
    | CatalogRegistered
    | CatalogRetired
    | SubscriptionPaused
    | SubscriptionResumed
    | SubscriptionReplayed
    | ScheduleCreated
    | ScheduleChanged
    | ScheduleFired
    | ScheduleSkipped
    | SchedulePaused
    | ScheduleResumed
    | ScheduleRemoved
    | TenantCreated
    | TenantChanged
    | TenantKeyRotated
    | TenantKeyDestroyed
    | TenantSuspended
    | TenantResumed
    | OrganizationCreated
    | OrganizationChanged
    | CredentialStored
    | CredentialRemoved
)
StepEvent: TypeAlias = StepEnter | StepExit
CommandEvent: TypeAlias = (
    CommandIssued
    | CommandClaimed
    | CommandStarted
    | CommandHeartbeat
    | CommandCompleted
    | CommandFailed
    | CommandLeaseExpired
    | CommandReleased
    | CommandCancelled
)
StageEvent: TypeAlias = StageOpened | StageClosed
FrameEvent: TypeAlias = (
    FrameDispatched
    | FrameClaimed
    | FrameHeartbeat
    | FrameCommitted
    | FrameFailed
    | FrameLeaseExpired
    | FrameReleased
    | FrameAbandoned
)
LoopEvent: TypeAlias = (
    LoopStarted
    | LoopItem
    | LoopDone
    | LoopFanoutStarted
    | LoopShardEnqueued
    | LoopShardDone
    | LoopShardFailed
    | LoopFaninCompleted
)
ResultEvent: TypeAlias = ResultStored | ResultExpired
CallEvent: TypeAlias = CallDone | CallError
ProviderEvent: TypeAlias = ProviderSubmitted | ProviderObserved
OrganizationEvent: TypeAlias = OrganizationCreated | OrganizationChanged
ALL: tuple[type[AnyEvent], ...] = (
    PlaybookInitialized,
    PlaybookCompleted,
    PlaybookFailed,
    WorkflowInitialized,
    WorkflowCompleted,
    WorkflowFailed,
    StepEnter,
    StepExit,
    CommandIssued,
    CommandClaimed,
    CommandStarted,
    CommandHeartbeat,
    CommandCompleted,
    CommandFailed,
    CommandLeaseExpired,
    CommandReleased,
    CommandCancelled,
    CallDone,
    CallError,
    StageOpened,
    StageClosed,
    FrameDispatched,
    FrameClaimed,
    FrameHeartbeat,
    FrameCommitted,
    FrameFailed,
    FrameLeaseExpired,
    FrameReleased,
    FrameAbandoned,
    LoopStarted,
    LoopItem,
    LoopDone,
    LoopFanoutStarted,
    LoopShardEnqueued,
    LoopShardDone,
    LoopShardFailed,
    LoopFaninCompleted,
    ResultStored,
    ResultExpired,
    ReplySent,
    ProviderSubmitted,
    ProviderObserved,
    ExecutionCancelled,
    ExecutionSuspended,
    ExecutionResumed,
    ExecutionForked,
    ExecutionCheckpointed,
    ExecutionDeadLettered,
    RedriveRequested,
    RedriveCompleted,
    TriggerRejected,
    TriggerRedriven,
    TriggerDiscarded,
    CatalogRegistered,
    CatalogRetired,
    SubscriptionPaused,
    SubscriptionResumed,
    SubscriptionReplayed,
    ScheduleCreated,
    ScheduleChanged,
    ScheduleFired,
    ScheduleSkipped,
    SchedulePaused,
    ScheduleResumed,
    ScheduleRemoved,
    TenantCreated,
    TenantChanged,
    TenantKeyRotated,
    TenantKeyDestroyed,
    TenantSuspended,
    TenantResumed,
    OrganizationCreated,
    OrganizationChanged,
    CredentialStored,
    CredentialRemoved,
)

READERS: dict[str, Callable[[EventFields], AnyEvent]] = {one.TYPE: one.read for one in ALL}
VERSIONS: dict[str, int] = {
    "frame.lease_expired": 2,
}
"""The newest versions of types; others are at version 1."""


def typed(event: EventFields) -> AnyEvent | None:
    """Return an event as the class of its type; None: the catalogue has no such type.

    An event of an older version is upcasted first.

    Raises:
        UnreadableEvent: a required routing value is missing.
        NewerEvent: the event has a later version than this program reads.
        MissingUpcaster: no upcaster reads its version.
    """
    read = READERS.get(event.type)
    if read is None:
        return None
    version = VERSIONS.get(event.type, 1)
    if event.schema_version not in (version, None):
        event = at_version(event, version)
    try:
        return read(event)
    except KeyError as missing:
        raise UnreadableEvent(event.type, str(missing)) from missing
