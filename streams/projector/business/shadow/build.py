"""Build of a version in the shadow: every execution of a scope is folded up to its last event.

Projectors may go on: they maintain the version as soon as it is registered, and a row that has
seen more of its execution is not overwritten. After an interruption, run it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from streams.events.model import Event
from streams.log.port import EventStore
from streams.payload.port import Scope
from streams.projector.business.declared import Declared, PlaybookOf
from streams.projector.business.fold import BusinessFolds
from streams.projector.core import View, absorb
from streams.projector.heads import BEFORE_ALL, RootHeads, RootPlace
from streams.projector.port import ProjectionWriter
from streams.projector.rows import Changes

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowProgress:
    """How much was folded."""

    roots: int = 0
    total_roots: int
    executions: int = 0
    """Executions that have the projection."""
    events: int = 0
    """Their events."""
    seconds: float = 0.0


OnShadow = Callable[[ShadowProgress], None]


async def build_shadow(
    heads: RootHeads,
    log: EventStore,
    store: ProjectionWriter,
    folds: BusinessFolds,
    declared: Declared,
    *,
    scope: Scope,
    projection: str,
    report: OnShadow | None = None,
) -> ShadowProgress:
    """Fold all versions of a projection up to the end of each execution.

    Raises:
        Unavailable: log, payloads or tables cannot be reached; run it again.
    """
    started_at = time.monotonic()
    done = ShadowProgress(total_roots=(await heads.totals()).roots)
    after_id = BEFORE_ALL
    while page := await heads.page(after_id=after_id, limit=PAGE):
        for place in page:
            view = await _view(log, place, scope)
            if view is not None and await _has(declared, view, place, projection):
                last = await _event(log, place, place.seq)
                changes = Changes()
                changes.add(await folds.rows([last], {place.root: view}))
                await store.save(changes, ())
                executions, events = done.executions + 1, done.events + place.seq
                done = replace(done, executions=executions, events=events)
            seconds = time.monotonic() - started_at
            done = replace(done, roots=done.roots + 1, seconds=seconds)
            if report is not None:
                report(done)
        after_id = page[-1].root.id
    return done


async def _view(log: EventStore, place: RootPlace, scope: Scope) -> View | None:
    """Return an execution as of its first event, which names its playbook; None: another root."""
    if place.root.type != "execution" or not place.seq:
        return None
    first = await _event(log, place, 1)
    if Scope(first.tenant_id, first.organization_id) != scope:
        return None
    return absorb(View(), first)[0]


async def _has(declared: Declared, view: View, place: RootPlace, projection: str) -> bool:
    assert view.plan is not None, "its first event was absorbed"
    scope = Scope(view.plan.tenant_id, view.plan.organization_id)
    playbook = PlaybookOf(scope, view.plan.catalog_id or 0, view.plan.catalog_version or 0)
    found = await declared.maintained({place.root: playbook})
    return any(one.name == projection for one in found[place.root])


async def _event(log: EventStore, place: RootPlace, seq: int) -> Event:
    (found,) = [one async for one in log.read_root(place.root, after_seq=seq - 1, through_seq=seq)]
    return found
