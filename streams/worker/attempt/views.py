"""Views of task outcomes for templates and rules of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams.events.model import Json
from streams.playbook.plain_views import plain_view
from streams.playbook.views import IN_EVENT, reference_view, result_view
from streams.results.reference import ResultRef
from streams.worker.port import Outcome


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an outcome's data is stored, and its selected fields."""

    extracted: Mapping[str, Json]
    reference: ResultRef | None = None
    """None: the data is inline in its event."""

    def view(self) -> dict[str, object]:
        """Return the reference's fields as templates see them."""
        return reference_view(None if self.reference is None else self.reference.fields)


def task_view(outcome: Outcome, placed: Placement | None) -> dict[str, object]:
    """Return what later templates see under a task's label, and as `_prev`."""
    # A plain mapping, not an Envelope: this runs for every task of every row.
    envelope: dict[str, object] = {
        "status": outcome.status,
        "data": outcome.data,
        "meta": outcome.meta,
    }
    if outcome.error is not None:
        envelope["error"] = outcome.error
    if placed is None:
        return result_view(envelope)
    envelope["extracted"] = placed.extracted
    return {**result_view(envelope), **placed.view()}


def outcome_view(
    kind: str, outcome: Outcome, placed: Placement | None, attempt: int
) -> dict[str, object]:
    """Return what the rules of `eval` see as `outcome`."""
    view: dict[str, object] = {**_BLANK.get(kind, {}), **outcome.detail}
    view["status"] = outcome.status
    view["data"] = outcome.data
    view["meta"] = outcome.meta
    view["error"] = outcome.error
    view["attempt"] = attempt
    view["result"] = outcome.data
    if placed is not None:
        view["result"] = {
            "status": outcome.status,
            "data": outcome.data,
            "meta": outcome.meta,
            "extracted": placed.extracted,
            **IN_EVENT,
            **placed.view(),
        }
    return view


def plain_value(outcome: Outcome, placed: Placement | None) -> object:
    """Return what later templates see under a task's label in NoETL's spelling."""
    envelope: dict[str, object] = {
        "status": outcome.status,
        "data": outcome.data,
        "error": outcome.error,
    }
    if placed is not None and placed.reference is not None:
        envelope |= {"extracted": placed.extracted, "ref": placed.reference.fields}
    return plain_view(envelope)


def output_view(kind: str, outcome: Outcome, attempt: int) -> dict[str, object]:
    """Return what rules see as `output` in NoETL's spelling."""
    view: dict[str, object] = {**_BLANK.get(kind, {}), **outcome.detail}
    http = outcome.detail.get("http")
    status = http.get("status") if isinstance(http, Mapping) else None
    error: dict[str, object] | None = None
    if outcome.error is not None:
        own = {"retryable": False, "code": None, "status_code": status, "status": status}
        error = {**own, **outcome.error}
    view |= {"status": outcome.status, "data": outcome.data, "error": error}
    view["meta"] = {**outcome.meta, "attempt": attempt}
    return view


# A rule may read a status even of a call that got no response.
_BLANK: Mapping[str, Mapping[str, object]] = {
    "http": {"http": {"status": None, "headers": {}}},
    "playbook": {"playbook": {"execution_id": None, "status": None}},
    "postgres": {"pg": {"code": None}},
}
