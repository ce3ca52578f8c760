"""Checks of the control flow: unreachable steps and endless loops."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Do, Step, Task
from streams.playbook.problem import Severity
from streams.playbook.shape import closest
from streams.playbook.yaml_document import Path

_Node = TypeVar("_Node", bound=Hashable)


def check_steps(
    draft: PlaybookDraft, steps: Mapping[str, Step], first: str, places: Mapping[str, Path]
) -> None:
    """Report unreachable steps and endless cycles."""
    # A misspelt step is reported separately; do not also report its target as unreachable.
    edges = {
        name: {closest(arc.step, steps) or "" for arc in step.arcs} for name, step in steps.items()
    }
    reached = _reached(edges, [first])
    for name in steps:
        if name not in reached:
            hint = f"name it in `next` of a step that runs; the first is {first!r}"
            draft.report((*places[name], "step"), f"step {name!r} is never reached", hint)
    always = {name: _always(step) & steps.keys() for name, step in steps.items()}
    for cycle in _cycles(always):
        if cycle[0] in reached:
            hint = "give one of its arcs a `when`"
            message = f"the steps {' → '.join([*cycle, cycle[0]])} follow each other for ever"
            draft.report((*places[cycle[0]], "next"), message, hint, at_key=True)
    for name, step in steps.items():
        _check_arcs(draft, step, places[name])


def _always(step: Step) -> set[str]:
    """Return the steps that follow unconditionally."""
    if step.when is not None:
        return set()
    sure = [arc.step for arc in step.arcs if arc.when is None]
    if step.inclusive:
        return set(sure)
    return set(sure[:1]) if step.arcs and step.arcs[0].when is None else set()


def _check_arcs(draft: PlaybookDraft, step: Step, path: Path) -> None:
    if step.inclusive:
        return
    for place, arc in enumerate(step.arcs[:-1]):
        if arc.when is None:
            lost = ", ".join(other.step for other in step.arcs[place + 1 :])
            message = f"the arc to {arc.step!r} always holds, so these are never taken: {lost}"
            hint = "give it a `when`, put it last, or say spec: {mode: inclusive}"
            draft.report((*path, "next"), message, hint, Severity.WARNING, at_key=True)
            return


def check_jumps(draft: PlaybookDraft, tasks: Sequence[Task], path: Path) -> None:
    """Report endless jumps of a pipeline."""
    exits = {len(tasks)}
    edges = {place: set(_next_places(tasks, place)) for place in range(len(tasks))}
    for place in _reached(edges, [0] if tasks else []):
        if place in exits or _reached(edges, [place]) & exits:
            continue
        if any(rule.do is Do.JUMP for rule in tasks[place].rules):
            label = tasks[place].label
            hint = "add a rule with `do: break` or `do: continue` that ends it"
            at = (*path, place, label)
            draft.report(at, f"task {label!r} jumps for ever: there is no way out", hint)


def _next_places(tasks: Sequence[Task], place: int) -> Iterable[int]:
    """Yield the tasks that may follow; the number of tasks means the end."""
    labels = {task.label: at for at, task in enumerate(tasks)}
    for rule in tasks[place].rules:
        if rule.do is Do.JUMP:
            yield labels.get(rule.to or "", len(tasks))
        elif rule.do is Do.CONTINUE:
            yield place + 1
        elif rule.do in (Do.BREAK, Do.FAIL):
            yield len(tasks)
        else:
            yield place
        if rule.when is None:
            return
    yield place + 1  # outcomes without a rule continue


def _reached(edges: Mapping[_Node, Iterable[_Node]], start: Iterable[_Node]) -> set[_Node]:
    found: set[_Node] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(edges.get(node, ()))
    return found


def _cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return one cycle for every strongly connected group of steps."""
    found: list[list[str]] = []
    seen: set[str] = set()
    for name in edges:
        if name not in seen and name in _reached(edges, edges[name]):
            cycle = _cycle(edges, name)
            seen |= set(cycle)
            found.append(cycle)
    return found


def _cycle(edges: Mapping[str, set[str]], start: str) -> list[str]:
    """Return a shortest cycle through `start`."""
    before: dict[str, str] = {}
    waiting = [start]
    for node in waiting:
        for following in sorted(edges[node]):
            if following == start:
                way = [node]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if following not in before:
                before[following] = node
                waiting.append(following)
    return [start]
