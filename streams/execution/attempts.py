"""Events of an attempt at a frame or a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from streams.events.model import Json, PayloadRef
from streams.events.types import (
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandHeartbeat,
    CommandReleased,
    FrameClaimed,
    FrameCommitted,
    FrameFailed,
    FrameHeartbeat,
    FrameReleased,
    ResultEnvelope,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameReport:
    """A worker's report of a frame's rows; `cursor` is where they end."""

    rows: int = 0
    failed_rows: int = 0
    cursor: dict[str, Json] | None = None
    retries: int | None = None
    saved: dict[str, Json] | None = None
    exhausted: bool | None = None
    errors: list[dict[str, Json]] | None = None
    ctx: dict[str, Json] | None = None
    ctx_elsewhere: list[dict[str, Json]] | None = None
    vars: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None


class _FrameFields(TypedDict):
    """Fields that every event of a frame's attempt has."""

    node_name: str
    frame_id: int
    stage_id: int
    attempt: int
    worker: str


class _CommandFields(TypedDict):
    """Fields that every event of a command's attempt has."""

    node_name: str
    command_id: int
    attempt: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameAttempt:
    """One attempt of one worker at a frame."""

    frame_id: int
    stage_id: int
    loop_id: int
    attempt: int
    step: str
    worker: str
    shard_id: str | None = None

    def claimed(self, lease_seconds: int) -> FrameClaimed:
        """Return the event that claims the frame."""
        return FrameClaimed(
            **self._fields(),
            lease_seconds=lease_seconds,
        )

    def heartbeat(self, lease_seconds: int) -> FrameHeartbeat:
        """Return the event that renews the lease."""
        return FrameHeartbeat(**self._fields(), lease_seconds=lease_seconds)

    def checkpoint(self, lease_seconds: int, report: FrameReport) -> FrameHeartbeat:
        """Return the event that renews the lease and stores rows that are done.

        The report covers the rows since the previous checkpoint, if there was one.
        """
        return FrameHeartbeat(
            **self._fields(),
            lease_seconds=lease_seconds,
            loop_id=self.loop_id,
            rows=report.rows,
            failed_rows=report.failed_rows,
            cursor=report.cursor,
            retries=report.retries,
            saved=report.saved,
            errors=report.errors,
            ctx=report.ctx,
            ctx_elsewhere=report.ctx_elsewhere,
            vars=report.vars,
            payload_ref=report.payload_ref,
        )

    def released(self) -> FrameReleased:
        """Return the event that releases the frame."""
        return FrameReleased(
            **self._fields(),
        )

    def committed(self, report: FrameReport, *, continues: bool) -> FrameCommitted:
        """Return the event that ends the frame."""
        return FrameCommitted(
            **self._fields(),
            status="partial" if report.failed_rows else "success",
            loop_id=self.loop_id,
            rows=report.rows,
            failed_rows=report.failed_rows,
            continues=continues,
            shard_id=self.shard_id,
            cursor=report.cursor,
            retries=report.retries,
            saved=report.saved,
            exhausted=report.exhausted,
            errors=report.errors,
            ctx=report.ctx,
            ctx_elsewhere=report.ctx_elsewhere,
            vars=report.vars,
            payload_ref=report.payload_ref,
        )

    def failed(self, error: str, report: FrameReport) -> FrameFailed:
        """Return the event that ends the attempt without a commit."""
        return FrameFailed(
            **self._fields(),
            status="error",
            error=error,
            loop_id=self.loop_id,
            rows=report.rows,
            failed_rows=report.failed_rows,
            shard_id=self.shard_id,
            cursor=report.cursor,
            exhausted=report.exhausted,
            errors=report.errors,
            ctx=report.ctx,
            payload_ref=report.payload_ref,
        )

    def _fields(self) -> _FrameFields:
        return {
            "node_name": self.step,
            "frame_id": self.frame_id,
            "stage_id": self.stage_id,
            "attempt": self.attempt,
            "worker": self.worker,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAttempt:
    """One attempt of one worker, or of the planner itself, at a command."""

    command_id: int
    attempt: int
    step: str
    worker: str
    loop_id: int | None = None

    def claimed(self, lease_seconds: int) -> CommandClaimed:
        """Return the event that claims the command."""
        return CommandClaimed(
            **self._fields(),
            lease_seconds=lease_seconds,
        )

    def heartbeat(self, lease_seconds: int) -> CommandHeartbeat:
        """Return the event that renews the lease."""
        return CommandHeartbeat(
            **self._fields(),
            lease_seconds=lease_seconds,
        )

    def released(self) -> CommandReleased:
        """Return the event that releases the command."""
        return CommandReleased(
            **self._fields(),
        )

    def completed(
        self, result: ResultEnvelope, payload_ref: PayloadRef | None = None
    ) -> CommandCompleted:
        """Return the event that completes the command."""
        return CommandCompleted(
            **self._fields(),
            status="success",
            loop_id=self.loop_id,
            result=result,
            payload_ref=payload_ref,
        )

    def failed(
        self,
        error: str,
        result: ResultEnvelope | None = None,
        payload_ref: PayloadRef | None = None,
    ) -> CommandFailed:
        """Return the event that fails the command."""
        return CommandFailed(
            **self._fields(),
            status="error",
            error=error,
            loop_id=self.loop_id,
            result=result,
            payload_ref=payload_ref,
        )

    def _fields(self) -> _CommandFields:
        return {
            "node_name": self.step,
            "command_id": self.command_id,
            "attempt": self.attempt,
            "worker": self.worker,
        }


AttemptEvent: TypeAlias = (
    FrameClaimed
    | FrameHeartbeat
    | FrameReleased
    | FrameCommitted
    | FrameFailed
    | CommandClaimed
    | CommandHeartbeat
    | CommandReleased
    | CommandCompleted
    | CommandFailed
)
