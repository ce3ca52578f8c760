"""A command: one tool step outside a loop, run by one worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from streams.envelope.model import PayloadRef
from streams.errors import Inconsistent
from streams.execution.change import copied
from streams.execution.fact import Fact, body, number, text
from streams.execution.lease import Lease, lease_of


class CommandStatus(StrEnum):
    """Where a command is. EXPIRED waits to be published again."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    EXPIRED = "EXPIRED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, kw_only=True)
class Command:
    """`document` is what the worker needs, inline; or `document_ref` names its payload."""

    command_id: int
    step: str
    activation: int
    tool: str
    pool: str
    created_at: datetime
    changed_at: datetime
    attempt: int = 1
    version: int = 1
    status: CommandStatus = CommandStatus.PENDING
    lease: Lease | None = None
    document: dict[str, Any] | None = None
    document_ref: PayloadRef | None = None
    result: dict[str, Any] | None = None
    output: PayloadRef | None = None
    error: str | None = None

    @property
    def has_ended(self) -> bool:
        """Say whether nothing more can happen to it."""
        return self.status in _ENDED


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
            change |= {"lease": None, "error": f"the lease of {fact.meta['worker']} ran out"}
        case "command.completed":
            change |= {"status": CommandStatus.COMPLETED, "lease": None, "error": None}
            change |= {"result": body(fact.result), "output": fact.payload_ref}
        case "command.failed":
            change |= {"status": CommandStatus.FAILED, "lease": None, "error": fact.error}
            change |= {"result": body(fact.result), "output": fact.payload_ref}
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
