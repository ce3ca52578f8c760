"""A command: one tool step outside a loop, run by one worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from streams.errors import Inconsistent
from streams.events.event_fields import Fact, body, number, text
from streams.events.model import PayloadRef
from streams.execution.fast_replace import copied
from streams.execution.lease import Lease, expiry, lease_of
from streams.results.envelope import Envelope


class CommandStatus(StrEnum):
    """Where a command is. EXPIRED and RELEASED wait to be published again."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    EXPIRED = "EXPIRED"
    RELEASED = "RELEASED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, kw_only=True)
class Command:
    """`document` is what the worker needs, inline; or `document_ref` names its payload.

    `failures` counts the attempts whose owner fell silent; one handed back is no failure.
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
    document: dict[str, Any] | None = None
    document_ref: PayloadRef | None = None
    result: Envelope | None = None
    output: PayloadRef | None = None
    error: str | None = None

    @property
    def has_ended(self) -> bool:
        """Say whether nothing more can happen to it."""
        return self.status in _ENDED

    @property
    def waits(self) -> bool:
        """Say whether a worker may claim it."""
        return self.status in _WAITING


_WAITING = frozenset((CommandStatus.PENDING, CommandStatus.EXPIRED, CommandStatus.RELEASED))
_ENDED = frozenset((CommandStatus.COMPLETED, CommandStatus.FAILED, CommandStatus.CANCELLED))


def absorb_command(command: Command | None, fact: Fact, at: datetime) -> Command:
    """Return the command after `fact`, one of its events."""
    if command is None:
        return _issued(fact, at)
    change: dict[str, Any] = {"version": command.version + 1, "changed_at": at}
    match fact.type:
        case "command.claimed":
            change |= {"status": CommandStatus.CLAIMED, "lease": lease_of(fact, at)}
        case "command.heartbeat":
            change["lease"] = lease_of(fact, at)
        case "command.lease_expired":
            change |= {"status": CommandStatus.EXPIRED, "attempt": command.attempt + 1}
            change |= {"failures": command.failures + 1, "lease": None, "error": expiry(fact)}
        case "command.released":
            change |= {"status": CommandStatus.RELEASED, "attempt": command.attempt + 1}
            change["lease"] = None
        case "command.completed":
            change |= {"status": CommandStatus.COMPLETED, "lease": None, "error": None}
            change |= {"result": Envelope.parse(fact.result), "output": fact.payload_ref}
        case "command.failed":
            change |= {"status": CommandStatus.FAILED, "lease": None, "error": fact.error}
            change |= {"result": Envelope.parse(fact.result), "output": fact.payload_ref}
        case "command.cancelled":
            change |= {"status": CommandStatus.CANCELLED, "lease": None}
    return copied(command, **change)


def _issued(fact: Fact, at: datetime) -> Command:
    if fact.type != "command.issued":
        raise Inconsistent(
            f"{fact.root}: {fact.type} comes before the command was issued; rebuild from the log"
        )
    return Command(
        command_id=number(fact, "command_id"),
        step=fact.node_name or "",
        activation=number(fact, "activation", 1),
        tool=text(fact, "tool") or "",
        pool=text(fact, "pool") or "default",
        attempt=number(fact, "attempt", 1),
        document=body(fact.context).get("document"),
        document_ref=fact.payload_ref,
        created_at=at,
        changed_at=at,
    )
