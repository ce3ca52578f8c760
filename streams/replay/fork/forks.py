"""Forks: prepared by a verified replay of the source, then appended as one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from streams.catalog.port import Playbooks
from streams.clock import Clock
from streams.events.model import Json, Root
from streams.events.seal import INLINE_MAX_BYTES
from streams.log.port import EventStore
from streams.payload.port import PayloadStore, Scope
from streams.playbook.model import Playbook
from streams.replay.cutoff import Cutoff, seq_of
from streams.replay.errors import NoSuchExecution, TamperedLog
from streams.replay.fork.effects import RepeatedEffect, repeated_effects
from streams.replay.fork.events import ForkState, fork_events
from streams.replay.fork.overrides import Overrides, with_values
from streams.replay.fork.point import ForkPoint, ForkPointFold
from streams.replay.port import StoredLog
from streams.replay.verified import VerifiedLog
from streams.results.oversized_events import spill_event
from streams.results.spill import Group


@dataclass(frozen=True, slots=True)
class PreparedFork:
    """A fork that was not started: its state, and the side effects it would repeat."""

    state: ForkState
    effects: tuple[RepeatedEffect, ...]


class Forks:
    """Starts executions from past states; the source's stream is only read."""

    def __init__(
        self,
        log: StoredLog,
        events: VerifiedLog,
        playbooks: Playbooks,
        payloads: PayloadStore,
        clock: Clock,
    ) -> None:
        self._log, self._events, self._playbooks = log, events, playbooks
        self._payloads, self._clock = payloads, clock

    async def prepare(
        self, execution_id: int, scope: Scope, position: int, values: Mapping[str, Json]
    ) -> PreparedFork:
        """Return the fork of an execution at a position; nothing is written.

        Raises:
            NoSuchExecution, BadCutoff: there is no such execution in this scope, or position.
            NothingToFork: it had completed there.
            BadOverride: a value to set does not exist in the state.
            TamperedLog: an event of the source is not what was appended.
            Unavailable: log, catalog or payload store cannot be read.
        """
        overrides = Overrides.of(values)
        point = await self._point(Root("execution", execution_id), scope, position)
        playbook = await self._playbooks.get(point.plan.catalog_id, point.plan.catalog_version)
        workload = await self._workload(point, playbook, overrides)
        ctx, groups = _ctx(point, overrides)
        state = ForkState(
            point=point,
            scope=scope,
            overrides=overrides,
            workload=workload,
            workload_ref=point.plan.workload_ref if workload is None else None,
            ctx=ctx,
            ctx_elsewhere=groups,
        )
        return PreparedFork(state, repeated_effects(playbook, point))

    async def start(
        self,
        fork: PreparedFork,
        execution_id: int,
        *,
        by: str,
        into: EventStore,
        inline_bytes: int = INLINE_MAX_BYTES,
    ) -> None:
        """Append the fork's first events; with an id that was used for it before, nothing new.

        Raises:
            VersionConflict, IdempotencyConflict: the id is of another execution.
            Unavailable: log or payload store is down; starting again with this id is safe.
        """
        first, *others = fork_events(fork.state, execution_id, by=by, now=self._clock.now())
        first = await spill_event(self._payloads, first, inline_bytes)
        await into.append([first, *others])

    async def _point(self, root: Root, scope: Scope, position: int) -> ForkPoint:
        head = await self._log.head(root)
        if head is None or head.scope != scope:
            raise NoSuchExecution(root.id, scope.tenant_id, scope.organization_id)
        wanted = await seq_of(Cutoff(seq=position), root, head, self._log)
        fold, chain = ForkPointFold(root, wanted), ""
        async for events in self._events.pages(root, through_seq=head.seq):
            for event in events:
                fold.absorb(event)
            chain = events[-1].chain
        if chain != head.chain.hex():
            raise TamperedLog(root, head.seq, None, "its chain is not that of the head")
        return fold.point()

    async def _workload(
        self, point: ForkPoint, playbook: Playbook, overrides: Overrides
    ) -> dict[str, Json] | None:
        """Return the workload; None if it is that of the source, in a payload."""
        given, ref = point.plan.workload, point.plan.workload_ref
        if not overrides.workload and given is None:
            return None
        if given is None:
            assert ref is not None, "a workload is inline or in a payload"
            given = orjson.loads(await self._payloads.get(ref)).get("workload", {})
        defaults = {**dict.fromkeys(playbook.workload_templates), **playbook.workload}
        return with_values("workload", given, overrides.workload, defaults)


def _ctx(point: ForkPoint, overrides: Overrides) -> tuple[dict[str, Json], list[Group]]:
    """Return `ctx` with the values to set, and the groups of its values in payloads."""
    names = {name for group in point.ctx_elsewhere for name in group["names"]}
    spilled: dict[str, Json] = dict.fromkeys(names)
    ctx = with_values("ctx", point.ctx, overrides.ctx, spilled)
    changed = {path.partition(".")[0] for path in overrides.ctx}
    groups: list[Group] = []
    for group in point.ctx_elsewhere:
        rest = [name for name in group["names"] if name not in changed]
        if rest:
            groups.append({**group, "names": rest})
    return ctx, groups
