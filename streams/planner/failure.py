"""The end of a failed execution: first the sinks that persist errors, then its last events."""

from __future__ import annotations

from streams.events.model import Json
from streams.events.text import shortened
from streams.events.types import FailureResult, PlaybookFailed, WorkflowFailed
from streams.execution.json_object import JsonObject
from streams.execution.plan import FAILED
from streams.planner.draft import Draft
from streams.planner.steps import enter
from streams.playbook.model import Step


def fail(draft: Draft, failure: JsonObject) -> None:
    """Draft the end of a failed execution."""
    step, error = str(failure["step"]), shortened(str(failure["error"]))
    draft.emit(WorkflowFailed(status=FAILED, error=error, failed_step=step), "1")
    result: FailureResult = {"status": "error", "errors": failure.get("errors", [])}
    if "data" in failure:
        result["data"] = failure["data"]
    draft.emit(
        PlaybookFailed(
            status=FAILED,
            error=error,
            failed_step=step,
            failed_rows=int(failure.get("rows") or 0),
            result=result,
        ),
        "1",
    )


def persists_errors(step: Step) -> bool:
    """Return whether a step is a sink that also runs after a failure."""
    return any(task.sink is not None and task.sink.on != "success" for task in step.tasks)


def runs_after_failure(draft: Draft, step: Step) -> bool:
    """Return whether a step is started although the execution will fail."""
    is_sink = step.persists is not None or step.name == draft.playbook.last
    return is_sink and persists_errors(step)


def enter_sink(draft: Draft, failure: JsonObject) -> bool:
    """Draft the entry of a sink that persists a failure; False: none is left."""
    for step in draft.playbook.steps.values():
        if step.persists is not None and _is_missing(draft, step, step.persists):
            enter(draft, step.name, {}, step.persists)
            return True
    last = draft.playbook.last
    if last is None or draft.plan.visits.get(last):
        return False
    if not persists_errors(draft.playbook.steps[last]):
        return False
    error: dict[str, Json] = {
        "kind": "playbook",
        "message": shortened(str(failure["error"])),
        "step": str(failure["step"]),
        "failed_rows": int(failure.get("rows") or 0),
    }
    enter(draft, last, {"failure": error}, draft.plan.last_step)
    return True


def _is_missing(draft: Draft, sink: Step, persisted: str) -> bool:
    """Return whether the sink of a failed step was not entered after its last visit."""
    plan = draft.plan
    if not runs_after_failure(draft, sink):
        return False
    known = plan.results.get(persisted)
    has_failed = known is not None and known.status == "error"
    return has_failed and plan.visits.get(sink.name, 0) < plan.visits.get(persisted, 0)


def with_sink_errors(draft: Draft, failure: JsonObject) -> JsonObject:
    """Return a failure whose message also names the sinks that failed after it."""
    error = str(failure["error"])
    for step in draft.playbook.steps.values():
        known = draft.plan.results.get(step.name)
        if step.name == failure["step"] or not runs_after_failure(draft, step):
            continue
        if known is not None and known.status == "error":
            reason = known.fields.get("error")
            message = reason.get("message") if isinstance(reason, dict) else reason
            error += f"; and {step.name} failed: {message}"
    return {**failure, "error": error}
