"""The graph of steps: joins and what they wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streams.playbook.model import Step


def with_joins(steps: Mapping[str, Step], first: str) -> dict[str, Step]:
    """Return the steps; each with several forward arcs to it waits for the steps before it.

    A back arc, to a step on the way from the first one, makes no join.
    """
    backward = _back_arcs(steps, first)
    forward = {
        name: [arc.step for arc in step.arcs if (name, arc.step) not in backward]
        for name, step in steps.items()
    }
    before: dict[str, set[str]] = {name: set() for name in steps}
    for name, targets in forward.items():
        for target in targets:
            if target in before:
                before[target].add(name)
    return {
        name: replace(step, awaits=_ancestors(name, before)) if len(before[name]) > 1 else step
        for name, step in steps.items()
    }


def _back_arcs(steps: Mapping[str, Step], first: str) -> set[tuple[str, str]]:
    """Return the arcs that lead to a step on the current way, walking depth first."""
    found: set[tuple[str, str]] = set()
    seen: set[str] = set()
    for root in (first, *steps):
        stack: list[tuple[str, list[str]]] = []
        if root in steps and root not in seen:
            seen.add(root)
            stack.append((root, [arc.step for arc in steps[root].arcs]))
        while stack:
            name, rest = stack[-1]
            if not rest:
                stack.pop()
                continue
            target = rest.pop(0)
            if any(target == one for one, _ in stack):
                found.add((name, target))
            elif target in steps and target not in seen:
                seen.add(target)
                stack.append((target, [arc.step for arc in steps[target].arcs]))
    return found


def _ancestors(name: str, before: Mapping[str, set[str]]) -> frozenset[str]:
    found: set[str] = set()
    rest = list(before[name])
    while rest:
        one = rest.pop()
        if one not in found:
            found.add(one)
            rest.extend(before[one])
    return frozenset(found - {name})
