"""Joins: steps that wait until no step before them is active, and start once."""

from __future__ import annotations

from streams.execution.plan import Activation, Plan
from streams.planner.draft import Draft
from streams.playbook.model import Step


def is_awaited(draft: Draft, name: str) -> bool:
    """Return whether a join was entered already and has not started: it starts only once."""
    step = draft.playbook.steps[name]
    entered = (one for one in draft.plan.activations.values() if one.step == name)
    return bool(step.awaits) and not all(map(_has_started, entered))


def is_waiting(step: Step, plan: Plan, activation: Activation) -> bool:
    """Return whether a join waits: it has not started, and a step before it is still active."""
    if not step.awaits or _has_started(activation):
        return False
    return any(one.step in step.awaits for one in plan.activations.values())


def _has_started(activation: Activation) -> bool:
    begun = (activation.command_id, activation.stage_id, activation.planning_id)
    return any(one is not None for one in begun)
