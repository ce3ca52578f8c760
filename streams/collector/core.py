"""Rules of garbage collection: live payloads and due results. Pure.

A payload that an event references is live as long as the log. In an execution, one that only
results name (`result.stored`, and references to them) is live until all those results expired.
A payload is live while it is live in any root.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from streams.events.locator import SCHEME, Locator
from streams.events.types import AnyEvent, ResultExpired, ResultStored, StepExit
from streams.ids import derive_id

Reason = Literal["ttl", "scope", "retention", "manual"]

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_NAMED = re.compile(rb"sha256((?:\W{1,8}[0-9a-f]{64}(?![0-9a-f]))+)")
_LOCATED = re.compile(
    rb"/tenant/([^/\s]+)/org/([^/\s]+)/payloads/sha256/([0-9a-f]{64})(?![0-9a-f])"
)
_HEX = re.compile(rb"[0-9a-f]{64,}")
_DIGEST_CHARS = 64
READ_TYPES = (ResultStored.TYPE, ResultExpired.TYPE, StepExit.TYPE)
LONGEST_NAME = 2048
"""Longest name of a payload in bytes: the overlap when data is read in pieces."""


@dataclass(frozen=True, slots=True)
class EventExtract:
    """The part of one event that the collector needs."""

    seq: int
    digests: frozenset[str]
    """Of every payload named in the event's reference or JSON."""
    event: AnyEvent | None = None
    """Its routing fields, if its type is one of `READ_TYPES`."""
    sure: frozenset[str] = frozenset()
    """The subset that is certainly of payloads, not possibly a user's own digests."""
    own: str | None = None
    """Digest of its own payload reference."""
    event_id: int | None = None


@dataclass(frozen=True, slots=True)
class RootState:
    """A root as of its newest event."""

    id: int
    type: str
    tenant_id: str
    organization_id: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Result:
    """A stored result that has not expired."""

    root: RootState
    result_id: int
    digest: str | None
    seq: int
    step: str | None
    scope: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class RootHolding:
    """The payloads and results of one root."""

    root: RootState
    live: frozenset[str]
    sure: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    """Payloads whose references in this root have all expired."""
    results: tuple[Result, ...] = ()
    exits: Mapping[str, int] = field(default_factory=dict)
    last_event_id: int | None = None
    """The newest of its events that matter here: the cause of an expiry."""


@dataclass(frozen=True, slots=True)
class Names:
    """The keys that a payload names."""

    links: frozenset[str]
    sure: frozenset[str] = frozenset()
    """The subset that is certainly of payloads, not possibly a user's own digests."""


@dataclass(frozen=True, slots=True)
class Due:
    """A reference that is due to expire."""

    root: RootState
    result_id: int
    reason: Reason
    cause_id: int | None = field(default=None, compare=False)


def digests_in(text: bytes) -> frozenset[str]:
    """Return the digests of payloads named in a text, as locators or in `sha256` fields."""
    runs = _NAMED.findall(text)
    return frozenset([found.decode() for run in runs for found in _DIGEST.findall(run)])


def located_in(text: bytes, folder: str) -> frozenset[str]:
    """Return the digests of an organization's payloads whose locators are in a text."""
    owner = tuple(folder.encode().split(b"/")[:2])
    found = _LOCATED.findall(text)
    return frozenset([digest.decode() for *names, digest in found if tuple(names) == owner])


def bare_in(data: bytes, prefix: str, present: Set[str]) -> set[str]:
    """Return the keys in `present` whose digest occurs anywhere in `data`.

    Arrow columns have values without separators, so every offset in a run of digits is tried.
    """
    found: set[str] = set()
    for digits in _HEX.findall(data):
        run = digits.decode()
        starts = range(len(run) - _DIGEST_CHARS + 1)
        found.update(
            [key for at in starts if (key := prefix + run[at : at + _DIGEST_CHARS]) in present]
        )
    return found


@lru_cache(maxsize=1024)
def folder_of(tenant_id: str, organization_id: str) -> str:
    """Return the key prefix of an organization's objects."""
    name = str(Locator.payload(tenant_id, organization_id, "0" * 64)).removeprefix(SCHEME)
    _, tenant, _, organization, *_ = name.split("/")
    return f"{tenant}/{organization}/"


def key_in(root: RootState, digest: str) -> str:
    """Return the key of a payload that a root references."""
    return f"{folder_of(root.tenant_id, root.organization_id)}sha256/{digest}"


def hold(
    root: RootState, extracts: Iterable[EventExtract], ended: Collection[int] = ()
) -> RootHolding:
    """Fold the events of one root, in order, treating the results in `ended` as expired."""
    named: set[str] = set()
    sure: set[str] = set()
    carried: set[str | None] = set()
    stored: dict[int, Result] = {}
    governed: dict[str, set[int]] = {}
    expired: set[int] = set(ended)
    exits: dict[str, int] = {}
    last: int | None = None
    for one in extracts:
        last = one.event_id
        named |= one.digests
        sure |= one.sure
        match one.event:
            case ResultStored(result_id=result_id) as event:
                stored[result_id] = _result(root, event, one)
                if one.own is not None:
                    governed.setdefault(one.own, set()).add(result_id)
                continue
            case ResultExpired(result_id=result_id):
                expired.add(result_id)
            case StepExit(node_name=step):
                exits[step] = one.seq
        carried.add(one.own)
    for digest in carried & governed.keys():
        del governed[digest]  # type: ignore[arg-type]
    live = {digest for digest in named if not _is_expired(root, digest, governed, expired)}
    results = tuple(result for id_, result in stored.items() if id_ not in expired)
    sets = (frozenset(live), frozenset(live & sure), frozenset(named - live))
    return RootHolding(root, *sets, results, exits, last)


def _is_expired(
    root: RootState, digest: str, governed: Mapping[str, set[int]], expired: set[int]
) -> bool:
    if not expired:
        return False
    results = governed.get(digest)
    if results is not None and results <= expired:
        return True
    return retained_id(root.id, digest) in expired


def retained_id(root_id: int, digest: str) -> int:
    """Return the id under which a payload expires that an event, not a result, references."""
    return derive_id(root_id, 0, f"payload/{digest}")


def due(
    holding: RootHolding,
    *,
    now: datetime,
    grace: timedelta,
    workflow_ended_at: datetime | None = None,
    retention: timedelta | None = None,
) -> list[Due]:
    """Return the references of a root that are due to expire.

    An execution counts as ended only after the grace, because it may be redriven until then.
    Retention also waits for the outermost execution, which may read results of inner ones.
    """
    root = holding.root
    if root.type != "execution":
        return []
    if retention is not None and _ended_before(root, workflow_ended_at, now - retention):
        ids = [result.result_id for result in holding.results]
        ids += [retained_id(root.id, digest) for digest in sorted(holding.live)]
        return [Due(root, id_, "retention", holding.last_event_id) for id_ in ids]
    found = []
    for result in holding.results:
        if result.scope == "permanent":
            continue
        if _before(result.expires_at, now):
            found.append(Due(root, result.result_id, "ttl", holding.last_event_id))
        elif _scope_is_over(result, holding, now - grace, workflow_ended_at):
            found.append(Due(root, result.result_id, "scope", holding.last_event_id))
    return found


def depends_on_workflow(
    holding: RootHolding, *, now: datetime, retention: timedelta | None
) -> bool:
    """Return whether `due` needs the end time of the outermost execution around a root."""
    if any(result.scope == "workflow" for result in holding.results):
        return True
    is_old = retention is not None and _before(holding.root.ended_at, now - retention)
    return is_old and bool(holding.live or holding.results)


def _ended_before(root: RootState, workflow_ended_at: datetime | None, limit: datetime) -> bool:
    return _before(root.ended_at, limit) and _before(workflow_ended_at, limit)


def _scope_is_over(
    result: Result, holding: RootHolding, ended_before: datetime, workflow_ended_at: datetime | None
) -> bool:
    if result.scope == "workflow":
        return _before(workflow_ended_at, ended_before)
    if _before(result.root.ended_at, ended_before):
        return True
    return result.scope == "step" and holding.exits.get(result.step or "", 0) > result.seq


def _before(at: datetime | None, limit: datetime) -> bool:
    return at is not None and at <= limit


def _result(root: RootState, event: ResultStored, extract: EventExtract) -> Result:
    at = event.expires_at
    return Result(
        root=root,
        result_id=event.result_id,
        digest=extract.own,
        seq=extract.seq,
        step=event.node_name,
        scope=event.scope,
        expires_at=None if at is None else datetime.fromisoformat(at),
    )
