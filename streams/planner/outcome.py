"""The result of an execution, and the failure of a playbook that has none."""

from __future__ import annotations

from streams.events.model import Json, PayloadRef
from streams.execution.json_object import JsonObject
from streams.planner.draft import Draft, encode
from streams.planner.scope import render
from streams.playbook.errors import ExpressionFailed
from streams.playbook.return_value import as_envelope
from streams.results.envelope import Envelope
from streams.results.spill import is_inline

_INSIDE = ("_ref", "tasks", "tasks_elsewhere")


def last_step_of(draft: Draft) -> str:
    """Return the step whose result is the execution's, ignoring a sink after it."""
    name = draft.plan.last_step or ""
    step = draft.playbook.steps.get(name)
    return name if step is None else step.persists or name


def outcome_of(draft: Draft) -> tuple[dict[str, Json], PayloadRef | None]:
    """Return the execution's result envelope, and the payload of its data, if any."""
    plan, returns = draft.plan, draft.playbook.returns
    if returns is not None:
        given = as_envelope(render(returns, plan, draft.moment))
        inline, ref = draft.externalize(given.pop("data", None))
        for name in ("meta", "error") if given["status"] == "success" else ():
            _check_small(draft, given, name)
        return {**given, **({"data": inline} if ref is None else {})}, ref
    last = plan.results.get(last_step_of(draft)) or Envelope.of("success")
    whole = last.without(*_INSIDE).to_json()
    if (found := last.payload) is not None:
        return whole, found
    if "ref" in whole:
        return whole, None
    inline, ref = draft.externalize(whole.get("data"))
    return (whole, None) if ref is None else ({k: whole[k] for k in whole if k != "data"}, ref)


def _check_small(draft: Draft, given: dict[str, Json], name: str) -> None:
    """Raise if an event cannot carry the fields besides its data."""
    if not is_inline(data := encode(given.get(name)), draft.room):
        why = f"has {len(data)} bytes, and without NUL characters {draft.room} are carried"
        raise ExpressionFailed(name, f"{why}; put it under `data`, which may have any size")


def returned_error(value: dict[str, Json]) -> JsonObject:
    """Return the failure of a playbook that returned an error, without data that is too large."""
    error = value.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    why = f"the playbook returned an error: {message or 'no reason under `error`'}"
    failure: JsonObject = {"step": "return", "error": why}
    if "data" in value:
        failure["data"] = value["data"]
    return failure


def return_failed(error: ExpressionFailed) -> JsonObject:
    """Return the failure of a playbook whose `return` cannot be rendered."""
    return {"step": "return", "error": f"the playbook's return: {error}", "rows": 0}


def cause_of(draft: Draft, failure: JsonObject) -> JsonObject:
    """Return a failure; if only the playbook's sink failed, the error it had to persist."""
    if failure["step"] != draft.playbook.last or draft.playbook.returns is None:
        return failure
    try:
        value, _ = outcome_of(draft)
    except ExpressionFailed as error:
        return return_failed(error)
    return returned_error(value) if value["status"] == "error" else failure
