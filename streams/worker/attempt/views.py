"""How templates see results: an envelope, with its data's own keys within reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams.events.model import Json
from streams.playbook.views import IN_EVENT, reference_view, result_view
from streams.worker.port import Outcome


@dataclass(frozen=True, slots=True)
class Kept:
    """What `spec.result` made of an outcome: its selected fields, and where it is kept."""

    extracted: Mapping[str, Json]
    ref: Mapping[str, Any] | None = None
    """The result reference; None: the result stays where it is."""


def task_view(outcome: Outcome, kept: Kept | None) -> dict[str, Any]:
    """Return what later templates see under a task's label, and as `_prev`."""
    envelope: dict[str, Any] = {
        "status": outcome.status,
        "data": outcome.data,
        "meta": outcome.meta,
    }
    if outcome.error is not None:
        envelope["error"] = outcome.error
    if kept is None:
        return result_view(envelope)
    envelope["extracted"] = kept.extracted
    return {**result_view(envelope), **reference_view(kept.ref)}


def outcome_view(kind: str, outcome: Outcome, kept: Kept | None, attempt: int) -> dict[str, Any]:
    """Return what the rules of `eval` see as `outcome`."""
    shown: dict[str, Any] = {**_BLANK.get(kind, {}), **outcome.detail}
    shown["status"] = outcome.status
    shown["data"] = outcome.data
    shown["meta"] = outcome.meta
    shown["error"] = outcome.error
    shown["attempt"] = attempt
    shown["result"] = outcome.data
    if kept is not None:
        shown["result"] = {
            "status": outcome.status,
            "data": outcome.data,
            "meta": outcome.meta,
            "extracted": kept.extracted,
            **IN_EVENT,
            **reference_view(kept.ref),
        }
    return shown


# A rule may ask for a status even of a call that got no answer at all.
_BLANK: Mapping[str, Mapping[str, Any]] = {
    "http": {"http": {"status": None, "headers": {}}},
    "playbook": {"playbook": {"execution_id": None, "status": None}},
    "postgres": {"pg": {"code": None}},
}
