"""Looks results up in the log by their names.

Refused
├── NoSuchResult    nothing was stored under the name
├── ForeignResult   it belongs to another tenant or organization
└── ResultExpired   it has expired
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from streams.clock import Clock
from streams.errors import Refused
from streams.events.event_fields import body, text
from streams.events.locator import BadLocator, Locator, ResultUri, parse
from streams.events.model import Event, PayloadRef, Root
from streams.log.port import EventStore
from streams.payload.port import Scope
from streams.results.reading import RowCheck
from streams.results.reference import Reference

FRAME = "frame"
"""The task in the names of frames' results."""


class NoSuchResult(Refused):
    """Nothing was stored under this name."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"there is no result {uri}; take the name from `_ref` of a result that is stored"
        )


class ForeignResult(Refused):
    """A result of another tenant or organization."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"{uri} does not belong to this tenant and organization")


class ResultExpired(Refused):
    """A result that has expired."""

    def __init__(self, uri: str, at: str, why: str) -> None:
        super().__init__(f"{uri} expired at {at} ({why}); run the step again to store it again")


@dataclass(frozen=True, slots=True)
class FoundResult:
    """A result: its reference, and the payload that holds it."""

    ref: Reference
    payload: PayloadRef


class Results:
    """Looks results up in the log."""

    def __init__(self, log: EventStore, clock: Clock) -> None:
        self._log, self._clock = log, clock

    async def find(self, uri: str, owner: Scope, execution_id: int | None = None) -> FoundResult:
        """Return the result with this name.

        With an `execution_id` the name may also be that of a payload which a result of this
        execution refers to.

        Raises:
            BadLocator: it is not a valid name.
            NoSuchResult, ForeignResult, ResultExpired: it cannot be read.
            Unavailable: the log is down.
        """
        name = parse(uri)
        if isinstance(name, Locator):
            if (name.tenant, name.org) != (owner.tenant_id, owner.organization_id):
                raise ForeignResult(uri)
            if name.kind != "payloads" or execution_id is None:
                raise NoSuchResult(uri)
            return await self._with_payload(uri, execution_id, owner)
        if not (name.key.isascii() and name.key.isdigit()):
            raise NoSuchResult(uri)
        return await self._stored(uri, name, owner) or await self._frame(uri, name, owner)

    async def of_execution(
        self, execution_id: int, owner: Scope, *, step: str | None = None, task: str | None = None
    ) -> list[Reference]:
        """Return the references of an execution's results that have not expired, oldest first.

        Raises:
            ForeignResult: the execution is another tenant's.
            Unavailable: the log is down.
        """
        found: dict[str, Reference] = {}
        async for event in self._log.read_root(Root("execution", execution_id)):
            _check_owner(event, f"execution {execution_id}", owner)
            if event.type == "result.expired":
                found.pop(str(event.meta["result_id"]), None)
            elif event.type == "result.stored" and self._end(event) is None:
                is_wanted = step in (None, event.node_name) and task in (None, text(event, "task"))
                if is_wanted:
                    found[str(event.meta["result_id"])] = Reference(body(event.result))
        return list(found.values())

    def ends(self, owner: Scope) -> RowCheck:
        """Return a check that refuses rows of a loop which have expired as results of their own.

        Rows have their time to live. What else ends them ends all rows of a loop together, so
        only one is looked up.
        """
        asked = False

        async def check(row: Mapping[str, Any]) -> None:
            nonlocal asked
            name, end = str(row.get("ref")), row.get("expires_at")
            if _is_past(end, self._clock.now()):
                raise ResultExpired(name, str(end), "ttl")
            if not asked:
                asked = True
                with suppress(NoSuchResult, ForeignResult, BadLocator):
                    await self.find(name, owner)

        return check

    async def _with_payload(self, uri: str, execution_id: int, owner: Scope) -> FoundResult:
        """Return the newest result of an execution that has this payload and has not expired."""
        found: dict[str, Event] = {}
        expired: ResultExpired | None = None
        async for event in self._log.read_root(Root("execution", execution_id)):
            _check_owner(event, uri, owner)
            one, payload = str(event.meta.get("result_id")), event.payload_ref
            if event.type == "result.expired" and found.pop(one, None) is not None:
                expired = _expired(uri, event)
            elif event.type == "result.stored" and payload is not None and payload.uri == uri:
                found[one] = event
        for event in reversed(found.values()):
            if (end := self._end(event)) is None and event.payload_ref is not None:
                return FoundResult(Reference(body(event.result)), event.payload_ref)
            expired = expired or ResultExpired(uri, str(end), "ttl")
        raise expired or NoSuchResult(uri)

    async def _stored(self, uri: str, name: ResultUri, owner: Scope) -> FoundResult | None:
        root = Root("execution", name.execution_id)
        stored: Event | None = None
        async for event in self._log.read_stream(root, f"{root}/result/{name.key}"):
            _check_owner(event, uri, owner)
            if event.type == "result.stored":
                stored = event
            elif event.type == "result.expired":
                raise _expired(uri, event)
        if stored is None or stored.payload_ref is None:
            return None
        ref = Reference(body(stored.result))
        if (ref.uri or uri) != uri:
            raise NoSuchResult(uri)
        if (end := self._end(stored)) is not None:
            raise ResultExpired(uri, end, "ttl")
        return FoundResult(ref, stored.payload_ref)

    def _end(self, stored: Event) -> str | None:
        """Return when a result's time to live ended; None: it has not ended."""
        end = text(stored, "expires_at")
        return end if _is_past(end, self._clock.now()) else None

    async def _frame(self, uri: str, name: ResultUri, owner: Scope) -> FoundResult:
        """Return a frame's rows, which are part of its loop's result."""
        root = Root("execution", name.execution_id)
        async for event in self._log.read_stream(root, f"{root}/frame/{name.key}"):
            _check_owner(event, uri, owner)
            if event.type == "frame.committed" and event.payload_ref is not None:
                if (name.step, name.task) != (event.node_name, FRAME):
                    break
                payload = event.payload_ref
                ref = Reference.to_payload(uri, payload, store="object", scope="permanent")
                return FoundResult(ref, payload)
        raise NoSuchResult(uri)


def _expired(uri: str, end: Event) -> ResultExpired:
    return ResultExpired(uri, end.ingest_time.isoformat(), str(end.meta["reason"]))


def _is_past(end: Any, now: datetime) -> bool:
    """Whether a time is past; a value that is not a time is an author's, and never is."""
    try:
        return isinstance(end, str) and datetime.fromisoformat(end) <= now
    except (ValueError, TypeError):
        return False


def _check_owner(event: Event, what: str, owner: Scope) -> None:
    if (event.tenant_id, event.organization_id) != (owner.tenant_id, owner.organization_id):
        raise ForeignResult(what)
