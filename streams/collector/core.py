"""Which payloads are live, and which results have come to their end: pure rules over the log.

A payload that an event carries lives as long as the log. In an execution, one that only results
name (`result.stored`, and whatever refers to them) lives until each of those results has expired.
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
from streams.events.model import Routing
from streams.events.types import ResultExpired, ResultStored, StepExit
from streams.ids import derive_id

Reason = Literal["ttl", "scope", "retention", "manual"]

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_NAMED = re.compile(rb"sha256((?:\W{1,8}[0-9a-f]{64}(?![0-9a-f]))+)")
_LOCATED = re.compile(
    rb"/tenant/([^/\s]+)/org/([^/\s]+)/payloads/sha256/([0-9a-f]{64})(?![0-9a-f])"
)
_HEX = re.compile(rb"[0-9a-f]{64,}")
_DIGEST_CHARS = 64
LONGEST_NAME = 2048
"""Bytes that a name of a payload can take, for whoever reads in pieces."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What the collector needs of one event."""

    seq: int
    type: str
    step: str | None
    meta: Mapping[str, Routing]
    digests: frozenset[str]
    """Of every payload that the event names, in its reference or in its JSON."""
    sure: frozenset[str] = frozenset()
    """Those among them that name a payload for certain, and not perhaps a user's own digest."""
    own: str | None = None
    """Digest of its own payload reference."""


@dataclass(frozen=True, slots=True)
class RootState:
    """A root as its newest event leaves it."""

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
    """What one root holds."""

    root: RootState
    live: frozenset[str]
    sure: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    """Payloads whose every reference in this root has expired."""
    results: tuple[Result, ...] = ()
    exits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Names:
    """The keys that a payload names."""

    links: frozenset[str]
    sure: frozenset[str] = frozenset()
    """Those among them that name a payload for certain, and not perhaps a user's own digest."""


@dataclass(frozen=True, slots=True)
class Due:
    """A reference that is to expire."""

    root: RootState
    result_id: int
    reason: Reason


def digests_in(text: bytes) -> frozenset[str]:
    """Return the digests of the payloads that a text names, as locators or in `sha256` fields."""
    runs = _NAMED.findall(text)
    return frozenset([found.decode() for run in runs for found in _DIGEST.findall(run)])


def located_in(text: bytes, folder: str) -> frozenset[str]:
    """Return the digests of an organization's payloads that a text names by their locators."""
    owner = tuple(folder.encode().split(b"/")[:2])
    found = _LOCATED.findall(text)
    return frozenset([digest.decode() for *names, digest in found if tuple(names) == owner])


def bare_in(data: bytes, prefix: str, there: Set[str]) -> set[str]:
    """Return the keys among `there` whose digest stands anywhere, with or without a word before.

    Columns of Arrow have values side by side, so that every place in a run of digits counts.
    """
    found: set[str] = set()
    for digits in _HEX.findall(data):
        run = digits.decode()
        starts = range(len(run) - _DIGEST_CHARS + 1)
        found.update(
            [key for at in starts if (key := prefix + run[at : at + _DIGEST_CHARS]) in there]
        )
    return found


@lru_cache(maxsize=1024)
def folder_of(tenant_id: str, organization_id: str) -> str:
    """Return where the objects of an organization lie."""
    name = str(Locator.payload(tenant_id, organization_id, "0" * 64)).removeprefix(SCHEME)
    _, tenant, _, organization, *_ = name.split("/")
    return f"{tenant}/{organization}/"


def key_in(root: RootState, digest: str) -> str:
    """Return the key of a payload that a root names."""
    return f"{folder_of(root.tenant_id, root.organization_id)}sha256/{digest}"


def hold(root: RootState, facts: Iterable[Fact], ended: Collection[int] = ()) -> RootHolding:
    """Fold the events of one root, in their order, as if these results had expired, too."""
    named: set[str] = set()
    sure: set[str] = set()
    carried: set[str | None] = set()
    stored: dict[int, Result] = {}
    governed: dict[str, set[int]] = {}
    expired: set[int] = set(ended)
    exits: dict[str, int] = {}
    for fact in facts:
        named |= fact.digests
        sure |= fact.sure
        if fact.type == ResultStored.TYPE:
            result = _result(root, fact)
            stored[result.result_id] = result
            if result.digest is not None:
                governed.setdefault(result.digest, set()).add(result.result_id)
            continue
        carried.add(fact.own)
        if fact.type == ResultExpired.TYPE:
            expired.add(int(fact.meta["result_id"]))
        elif fact.type == StepExit.TYPE and fact.step is not None:
            exits[fact.step] = fact.seq
    for digest in carried & governed.keys():
        del governed[digest]  # type: ignore[arg-type]
    live = {digest for digest in named if not _is_over(root, digest, governed, expired)}
    results = tuple(result for id_, result in stored.items() if id_ not in expired)
    sets = (frozenset(live), frozenset(live & sure), frozenset(named - live))
    return RootHolding(root, *sets, results, exits)


def _is_over(
    root: RootState, digest: str, governed: Mapping[str, set[int]], expired: set[int]
) -> bool:
    if not expired:
        return False
    results = governed.get(digest)
    if results is not None and results <= expired:
        return True
    return retained_id(root.id, digest) in expired


def retained_id(root_id: int, digest: str) -> int:
    """Return the id under which a payload expires that an event carries, or no result names."""
    return derive_id(root_id, 0, f"payload/{digest}")


def due(
    holding: RootHolding,
    *,
    now: datetime,
    grace: timedelta,
    workflow_ended_at: datetime | None = None,
    retention: timedelta | None = None,
) -> list[Due]:
    """Return the references of a root that have come to their end.

    An execution counts as ended a grace after its end, because until then it may be redriven.
    Retention waits for the outermost execution as well, which may read what one in it stored.
    """
    root = holding.root
    if root.type != "execution":
        return []
    if retention is not None and _ended_before(root, workflow_ended_at, now - retention):
        ids = [result.result_id for result in holding.results]
        ids += [retained_id(root.id, digest) for digest in sorted(holding.live)]
        return [Due(root, id_, "retention") for id_ in ids]
    found = []
    for result in holding.results:
        if result.scope == "permanent":
            continue
        if _before(result.expires_at, now):
            found.append(Due(root, result.result_id, "ttl"))
        elif _scope_is_over(result, holding, now - grace, workflow_ended_at):
            found.append(Due(root, result.result_id, "scope"))
    return found


def depends_on_workflow(
    holding: RootHolding, *, now: datetime, retention: timedelta | None
) -> bool:
    """Say whether `due` must know when the outermost execution around a root ended."""
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


def _result(root: RootState, fact: Fact) -> Result:
    expires_at = fact.meta.get("expires_at")
    return Result(
        root=root,
        result_id=int(fact.meta["result_id"]),
        digest=fact.own,
        seq=fact.seq,
        step=fact.step,
        scope=str(fact.meta["scope"]),
        expires_at=None if expires_at is None else datetime.fromisoformat(str(expires_at)),
    )
