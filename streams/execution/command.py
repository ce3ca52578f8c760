"""A command: one tool step outside a loop, run by one worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from streams.errors import Inconsistent
from streams.events.model import PayloadRef
from streams.events.reading import json_of
from streams.events.types import (
    CommandCancelled,
    CommandClaimed,
    CommandCompleted,
    CommandEvent,
    CommandFailed,
    CommandHeartbeat,
    CommandIssued,
    CommandLeaseExpired,
    CommandReleased,
    CommandStarted,
)
from streams.execution.fast_replace import copied
from streams.execution.json_object import JsonObject
from streams.execution.lease import Lease, expiry, lease_of
from streams.results.envelope import Envelope


class CommandStatus(StrEnum):
    """State of a command. EXPIRED and RELEASED wait to be published again."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    EXPIRED = "EXPIRED"
    RELEASED = "RELEASED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, kw_only=True)
class Command:
    """State of a command; its document is inline, or `document_ref` is its payload.

    `failures` counts attempts whose lease expired; a released one is not a failure.
    """

    command_id: int
    step: str
    activation: int
    tool: str
    pool: str
    created_at: datetime
    changed_at: datetime
    attempt: int = 1
    version: int = 1
    failures: int = 0
    status: CommandStatus = CommandStatus.PENDING
    lease: Lease | None = None
    document: JsonObject | None = None
    document_ref: PayloadRef | None = None
    result: Envelope | None = None
    output: PayloadRef | None = None
    error: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether its status is final."""
        return self.status in _ENDED

    @property
    def waits(self) -> bool:
        """Whether a worker may claim it."""
        return self.status in _WAITING


_WAITING = frozenset((CommandStatus.PENDING, CommandStatus.EXPIRED, CommandStatus.RELEASED))
_ENDED = frozenset((CommandStatus.COMPLETED, CommandStatus.FAILED, CommandStatus.CANCELLED))


def absorb_command(command: Command | None, event: CommandEvent, at: datetime) -> Command:
    """Return the command after one of its events."""
    if command is None:
        return _issued(event, at)
    change: dict[str, object] = {"version": command.version + 1, "changed_at": at}
    match event:
        case CommandClaimed():
            change |= {"status": CommandStatus.CLAIMED, "lease": lease_of(event, at)}
        case CommandHeartbeat():
            change["lease"] = lease_of(event, at)
        case CommandCompleted():
            change |= {"status": CommandStatus.COMPLETED, "lease": None, "error": None}
            change |= {"result": Envelope.parse(json_of(event.result)), "output": event.payload_ref}
        case CommandFailed():
            change |= {"status": CommandStatus.FAILED, "lease": None, "error": event.error}
            change |= {"result": Envelope.parse(json_of(event.result)), "output": event.payload_ref}
        case CommandLeaseExpired():
            change |= {"status": CommandStatus.EXPIRED, "attempt": command.attempt + 1}
            change |= {"failures": command.failures + 1, "lease": None, "error": expiry(event)}
        case CommandReleased():
            change |= {"status": CommandStatus.RELEASED, "attempt": command.attempt + 1}
            change["lease"] = None
        case CommandCancelled():
            change |= {"status": CommandStatus.CANCELLED, "lease": None}
        case CommandIssued() | CommandStarted():
            pass
        case _:
            assert_never(event)
    return copied(command, **change)


def _issued(event: CommandEvent, at: datetime) -> Command:
    if not isinstance(event, CommandIssued):
        raise Inconsistent(
            f"command {event.command_id}: {event.TYPE} comes before the command was issued; "
            "rebuild from the log"
        )
    return Command(
        command_id=event.command_id,
        step=event.node_name,
        activation=event.activation,
        tool=event.tool,
        pool=event.pool,
        attempt=event.attempt,
        document=event.document,
        document_ref=event.payload_ref,
        created_at=at,
        changed_at=at,
    )
