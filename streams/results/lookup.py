"""Lookup of results in the log by name.

Refused
├── NoSuchResult    nothing was stored under the name
├── ForeignResult   it belongs to another tenant or organization
└── ExpiredResult   it has expired
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from streams.clock import Clock
from streams.errors import Refused
from streams.events.locator import BadLocator, Locator, ResultUri, parse
from streams.events.model import Event, PayloadRef, Root
from streams.events.types import FrameCommitted, ResultExpired, ResultStored, typed
from streams.log.port import EventStore
from streams.payload.port import Scope
from streams.results.reading import RowCheck
from streams.results.reference import ResultRef

_RESULT_TYPES = (ResultStored.TYPE, ResultExpired.TYPE)
FRAME = "frame"
"""The task in the names of frames' results."""


class NoSuchResult(Refused):
    """No result has this name."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"result {uri} does not exist; use the name in `_ref` of a stored result")


class ForeignResult(Refused):
    """A result of another tenant or organization."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"{uri} does not belong to this tenant and organization")


class ExpiredResult(Refused):
    """A result that has expired."""

    def __init__(self, uri: str, at: str, why: str) -> None:
        super().__init__(f"{uri} expired at {at} ({why}); run the step again to store it again")


@dataclass(frozen=True, slots=True)
class FoundResult:
    """A result: its reference, and the payload that holds it."""

    ref: ResultRef
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
            NoSuchResult, ForeignResult, ExpiredResult: it cannot be read.
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
    ) -> list[ResultRef]:
        """Return the references of an execution's results that have not expired, oldest first.

        Raises:
            ForeignResult: the execution is another tenant's.
            Unavailable: the log is down.
        """
        found: dict[int, ResultRef] = {}
        async for event in self._log.read_root(Root("execution", execution_id)):
            _check_owner(event, f"execution {execution_id}", owner)
            known = typed(event) if event.type in _RESULT_TYPES else None
            if isinstance(known, ResultExpired):
                found.pop(known.result_id, None)
            elif isinstance(known, ResultStored) and self._end(known) is None:
                is_wanted = step in (None, known.node_name) and task in (None, known.task)
                if is_wanted:
                    found[known.result_id] = ResultRef(known.result or {})
        return list(found.values())

    def ends(self, owner: Scope) -> RowCheck:
        """Return a check that refuses rows of a loop that have expired as results.

        Rows have their own time to live. Everything else that expires them expires all rows of
        a loop, so only one is looked up.
        """
        asked = False

        async def check(row: Mapping[str, object]) -> None:
            nonlocal asked
            name, end = str(row.get("ref")), row.get("expires_at")
            if _is_past(end, self._clock.now()):
                raise ExpiredResult(name, str(end), "ttl")
            if not asked:
                asked = True
                with suppress(NoSuchResult, ForeignResult, BadLocator):
                    await self.find(name, owner)

        return check

    async def _with_payload(self, uri: str, execution_id: int, owner: Scope) -> FoundResult:
        """Return the newest result of an execution that has this payload and has not expired."""
        found: dict[int, ResultStored] = {}
        expired: ExpiredResult | None = None
        async for event in self._log.read_root(Root("execution", execution_id)):
            _check_owner(event, uri, owner)
            known = typed(event) if event.type in _RESULT_TYPES else None
            if isinstance(known, ResultExpired) and found.pop(known.result_id, None) is not None:
                expired = _expired(uri, event, known)
            elif isinstance(known, ResultStored) and _has_payload(known, uri):
                found[known.result_id] = known
        for stored in reversed(found.values()):
            if (end := self._end(stored)) is None and stored.payload_ref is not None:
                return FoundResult(ResultRef(stored.result or {}), stored.payload_ref)
            expired = expired or ExpiredResult(uri, str(end), "ttl")
        raise expired or NoSuchResult(uri)

    async def _stored(self, uri: str, name: ResultUri, owner: Scope) -> FoundResult | None:
        root = Root("execution", name.execution_id)
        stored: ResultStored | None = None
        async for event in self._log.read_stream(root, f"{root}/result/{name.key}"):
            _check_owner(event, uri, owner)
            known = typed(event)
            if isinstance(known, ResultStored):
                stored = known
            elif isinstance(known, ResultExpired):
                raise _expired(uri, event, known)
        if stored is None or stored.payload_ref is None:
            return None
        ref = ResultRef(stored.result or {})
        if (ref.uri or uri) != uri:
            raise NoSuchResult(uri)
        if (end := self._end(stored)) is not None:
            raise ExpiredResult(uri, end, "ttl")
        return FoundResult(ref, stored.payload_ref)

    def _end(self, stored: ResultStored) -> str | None:
        """Return when a result's time to live ended; None: it has not ended."""
        end = stored.expires_at
        return end if _is_past(end, self._clock.now()) else None

    async def _frame(self, uri: str, name: ResultUri, owner: Scope) -> FoundResult:
        """Return a frame's rows, which are part of its loop's result."""
        root = Root("execution", name.execution_id)
        async for event in self._log.read_stream(root, f"{root}/frame/{name.key}"):
            _check_owner(event, uri, owner)
            if event.type == FrameCommitted.TYPE and event.payload_ref is not None:
                if (name.step, name.task) != (event.node_name, FRAME):
                    break
                payload = event.payload_ref
                ref = ResultRef.to_payload(uri, payload, store="object", scope="permanent")
                return FoundResult(ref, payload)
        raise NoSuchResult(uri)


def _expired(uri: str, event: Event, end: ResultExpired) -> ExpiredResult:
    return ExpiredResult(uri, event.ingest_time.isoformat(), end.reason)


def _has_payload(stored: ResultStored, uri: str) -> bool:
    return stored.payload_ref is not None and stored.payload_ref.uri == uri


def _is_past(end: object, now: datetime) -> bool:
    """Return whether a time is past; False for a value that is not a time."""
    try:
        return isinstance(end, str) and datetime.fromisoformat(end) <= now
    except (ValueError, TypeError):
        return False


def _check_owner(event: Event, what: str, owner: Scope) -> None:
    if (event.tenant_id, event.organization_id) != (owner.tenant_id, owner.organization_id):
        raise ForeignResult(what)
