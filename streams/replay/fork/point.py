"""The state that a fork begins with: the fold up to a position, without what runs again. Pure.

A position inside one decision of the planner stands for its end: between the exit of a step and
the entry of the next one nothing is open. A state after a failure or a cancellation is that
before it, when the failed step was still open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.events.model import Event, Root
from streams.events.types import (
    AnyEvent,
    CommandIssued,
    ExecutionCancelled,
    FrameClaimed,
    FrameCommitted,
    PlaybookCompleted,
    PlaybookFailed,
    ResultStored,
    StepEnter,
    StepExit,
    WorkflowCompleted,
    WorkflowFailed,
    typed,
)
from streams.execution.json_object import JsonObject
from streams.execution.plan import Activation, Plan, key_of
from streams.projector.core import View, absorb, checksums
from streams.projector.digests import ALL
from streams.replay.fork.errors import NothingToFork
from streams.results.envelope import Envelope
from streams.results.spill import Group, merged

_WITHIN_DECISIONS = (StepExit, StepEnter, ResultStored)


@dataclass(slots=True)
class _Entry:
    """What was true when a step was entered, and what it has done since."""

    ctx: JsonObject
    groups: list[Group]
    result: Envelope | None
    changed: set[str] = field(default_factory=set)
    """Names of `ctx` that it has set since."""
    work: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPoint:
    """The state of a source after its event at `position`."""

    position: int
    chain: str
    checksum: str
    plan: Plan
    """As it was; the fields below replace its own."""
    entered_again: tuple[Activation, ...]
    results: Mapping[str, Envelope]
    ctx: JsonObject
    ctx_elsewhere: list[Group]
    work: Mapping[str, Mapping[str, int]]
    """Commands, frames and rows of each step that the source had begun and would be repeated."""


class ForkPointFold:
    """Folds all events of a source; those after the point only count as work to repeat."""

    def __init__(self, root: Root, wanted: int) -> None:
        self._root, self._wanted = root, wanted
        self._view = View()
        self._last: tuple[Event, AnyEvent | None] | None = None
        self._entries: dict[str, _Entry] = {}
        self._later: dict[str, Counter[str]] = {}
        self._is_found = False

    def absorb(self, event: Event) -> None:
        """Add the next event.

        Raises:
            NothingToFork: the source had completed at the position.
        """
        known = typed(event)
        if not self._is_found and self._ends_before(event, known):
            self._is_found = True
        if self._is_found:
            if known is not None and known.node_name is not None:
                _count(self._later.setdefault(known.node_name, Counter()), known)
            return
        before = self._view.plan
        self._view, _ = absorb(self._view, event)
        self._last = (event, known)
        if before is not None and self._view.plan is not None:
            self._track(before, self._view.plan, known)

    def point(self) -> ForkPoint:
        """Return the state, once all events were added."""
        plan = self._view.plan
        assert plan is not None, "a root has a first event"
        assert self._last is not None
        again = tuple(
            Activation(
                step=one.step,
                number=one.number,
                args=one.args,
                args_elsewhere=one.args_elsewhere,
            )
            for one in plan.activations.values()
        )
        results, ctx, groups = self._undone(plan)
        return ForkPoint(
            position=self._last[0].seq,
            chain=self._last[0].chain,
            checksum=checksums(self._view)[ALL],
            plan=plan,
            entered_again=again,
            results=results,
            ctx=ctx,
            ctx_elsewhere=groups,
            work=self._work(),
        )

    def _ends_before(self, event: Event, known: AnyEvent | None) -> bool:
        """Return whether the state is that before this event."""
        if isinstance(known, WorkflowCompleted | PlaybookCompleted) and event.seq <= self._wanted:
            raise NothingToFork(
                f"{self._root}: had completed at event {event.seq}, nothing would run; "
                f"choose a position below {event.seq}"
            )
        if _is_failure(known):
            return True
        if event.seq <= self._wanted or self._last is None:
            return False
        last, last_known = self._last
        return not (
            isinstance(known, _WITHIN_DECISIONS)
            and isinstance(last_known, _WITHIN_DECISIONS)
            and event.causation_id == last.causation_id
        )

    def _track(self, before: Plan, after: Plan, known: AnyEvent | None) -> None:
        if isinstance(known, StepEnter):
            step = known.node_name
            self._entries[key_of(step, known.activation)] = _Entry(
                before.ctx, before.ctx_elsewhere, before.results.get(step)
            )
        elif isinstance(known, StepExit):
            self._entries.pop(key_of(known.node_name, known.activation), None)
        elif known is not None:
            names = _changed(before, after)
            for key, entry in self._entries.items():
                if after.activations[key].step == known.node_name:
                    entry.changed |= names
                    _count(entry.work, known)

    def _undone(self, plan: Plan) -> tuple[dict[str, Envelope], JsonObject, list[Group]]:
        """Return results and `ctx` without what the open steps have set."""
        results, ctx, groups = dict(plan.results), plan.ctx, plan.ctx_elsewhere
        for key, entry in self._entries.items():
            step = plan.activations[key].step
            results.pop(step, None)
            if entry.result is not None:
                results[step] = entry.result
            inline = {name: entry.ctx[name] for name in entry.changed if name in entry.ctx}
            ctx = {name: one for name, one in ctx.items() if name not in entry.changed}
            moved = [_only(group, entry.changed) for group in entry.groups]
            rest = [_without(group, entry.changed) for group in groups]
            ctx, groups = merged(
                ctx, [one for one in rest if one["names"]], inline, [g for g in moved if g["names"]]
            )
        return results, ctx, groups

    def _work(self) -> dict[str, Mapping[str, int]]:
        found = {step: Counter(count) for step, count in self._later.items()}
        for key, entry in self._entries.items():
            found.setdefault(key.rpartition("#")[0], Counter()).update(entry.work)
        return {step: count for step, count in found.items() if count.total()}


def _is_failure(known: AnyEvent | None) -> bool:
    match known:
        case StepExit():
            return known.status == "error" and known.then not in ("continue", "handled")
        case WorkflowFailed() | PlaybookFailed() | ExecutionCancelled():
            return True
    return False


def _count(work: Counter[str], known: AnyEvent | None) -> None:
    match known:
        case CommandIssued():
            work["commands"] += 1
        case FrameClaimed():
            work["frames"] += 1
        case FrameCommitted():
            work["rows"] += known.rows


def _changed(before: Plan, after: Plan) -> set[str]:
    """Return the names of `ctx` that an event has set; values are shared while they are equal."""
    if after.ctx is before.ctx and after.ctx_elsewhere is before.ctx_elsewhere:
        return set()
    names = before.ctx.keys() | after.ctx.keys()
    nothing = object()
    found = {
        one for one in names if before.ctx.get(one, nothing) is not after.ctx.get(one, nothing)
    }
    earlier, later = _places(before.ctx_elsewhere), _places(after.ctx_elsewhere)
    return found | {name for name, _ in earlier ^ later}


def _places(groups: list[Group]) -> set[tuple[str, str]]:
    return {(name, group["sha256"]) for group in groups for name in group["names"]}


def _only(group: Group, names: set[str]) -> Group:
    return {**group, "names": [one for one in group["names"] if one in names]}


def _without(group: Group, names: set[str]) -> Group:
    return {**group, "names": [one for one in group["names"] if one not in names]}
