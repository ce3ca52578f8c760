"""Opening a loop: its rows, their policy, and the stage of its frames."""

from __future__ import annotations

from typing import NamedTuple

from streams.events.model import Json, PayloadRef
from streams.events.types import LoopFanoutStarted, LoopStarted, LoopStartedMode, StageOpened
from streams.execution.command import Command
from streams.execution.plan import Activation
from streams.ids import derive_id
from streams.payload.content import reference_json
from streams.planner.draft import Draft
from streams.planner.scope import holds, input_of, render
from streams.planner.steps import StepEnding, issue, leave
from streams.playbook.errors import ExpressionFailed
from streams.playbook.model import Cursor, Loop, Mode

_MODES: dict[Mode, LoopStartedMode] = {
    Mode.SEQUENTIAL: "sequential",
    Mode.PARALLEL: "parallel",
    Mode.CURSOR: "cursor",
    Mode.FANOUT: "fanout",
}


MOST_FRAMES = 4
"""Frames over which a loop's concurrent rows are spread."""


class _Collection(NamedTuple):
    """What a loop goes over; `ref` is where it is when no event can carry it."""

    mode: Mode
    total: int | None
    frame_size: int
    ref: PayloadRef | None


def start_loop(draft: Draft, activation: Activation, loop: Loop) -> None:
    """Draft the first events of an entered loop step: its stage, or a plan of its frames."""
    step = draft.playbook.steps[activation.step]
    try:
        if not holds(step.when, draft.plan, draft.moment, activation):
            leave(draft, activation, StepEnding(status="skipped"))
        elif loop.cursor is not None and loop.cursor.form != "claim":
            policy = _policy(draft, loop)
            issue(
                draft, activation, "cursor.plan", draft.pool_of(step.name), {"size": policy["size"]}
            )
        elif loop.cursor is not None:
            _open(draft, activation, loop, _claims(loop.cursor), None, None)
        else:
            items = _items(_render_source(draft, activation, loop), step.name)
            _open(draft, activation, loop, {"kind": "list"}, len(items), items)
    except ExpressionFailed as error:
        leave(draft, activation, StepEnding(status="error", error=f"step {step.name}: {error}"))


def _claims(cursor: Cursor) -> dict[str, Json]:
    return {"kind": "claim", "until": "empty"} if cursor.is_fenced else {"kind": "claim"}


def after_planning(draft: Draft, activation: Activation, loop: Loop, command: Command) -> None:
    """Draft the stage of a cursor whose frames were planned."""
    if command.error is not None:
        why = f"step {command.step}: its rows could not be planned: {command.error}"
        leave(draft, activation, StepEnding(status="error", error=why))
        return
    if command.output is not None:
        found = draft.moment.known.payload(command.output)
    else:
        found = (None if command.result is None else command.result.data) or {}
    assert loop.cursor is not None
    name = "boundaries" if loop.cursor.form == "keyset" else "ranges"
    listed, ref = draft.externalize(found[name])
    source: dict[str, Json] = {"kind": loop.cursor.form, "count": len(found[name])}
    source |= {name: listed} if ref is None else {f"{name}_ref": reference_json(ref)}
    if "counts" in found:
        counts, ref = draft.externalize(found["counts"])
        source |= {"counts": counts} if ref is None else {"counts_ref": reference_json(ref)}
    if "type" in found:
        source["type"] = found["type"]
    _open(draft, activation, loop, source, int(found.get("rows", 0)), None)


def _render_source(draft: Draft, activation: Activation, loop: Loop) -> Json:
    """Return the value of `loop.in`."""
    assert loop.source is not None
    return render(loop.source, draft.plan, draft.moment, activation)


def _items(value: Json, step: str) -> list[Json]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [{"key": key, "value": each} for key, each in value.items()]
    raise ExpressionFailed(
        "loop.in", f"gives {type(value).__name__} in step {step!r}; it must give a list"
    )


def _rows_in_flight(draft: Draft, activation: Activation, loop: Loop) -> int | None:
    """Return how many rows the author lets run at once; None: the deployment's default."""
    if loop.rows_in_flight is None:
        return None
    value = render(loop.rows_in_flight, draft.plan, draft.moment, activation)
    try:
        return max(1, int(str(value)))
    except ValueError:
        raise ExpressionFailed(
            "loop.spec.max_in_flight", f"gives {value!r}; it must give a number"
        ) from None


def _spread(rows: int, total: int, size: int) -> dict[str, int]:
    """Return frames in flight and rows at once in each, for `rows` at once in all."""
    window = max(
        range(1, min(rows, MOST_FRAMES) + 1), key=lambda count: (rows // count * count, count)
    )
    at_once = rows // window
    share = -(-total // window)
    return {
        "window": window,
        "parallelism": window,
        "row_concurrency": at_once,
        "size": max(1, min(size, max(share, at_once))),
    }


def _policy(draft: Draft, loop: Loop) -> dict[str, int]:
    rules = draft.moment.rules
    kind = "fanout" if loop.mode is Mode.FANOUT else "loop"
    policy = dict(rules.policies[kind])
    if loop.policy is None:
        policy["size"] = 1
    else:
        asked = {name: getattr(loop.policy, name) for name in loop.policy.__slots__}
        policy |= {name: value for name, value in asked.items() if value is not None}
    policy["window"] = loop.max_in_flight or rules.window
    if loop.mode is Mode.SEQUENTIAL:
        policy |= {"window": 1, "parallelism": 1, "row_concurrency": 1}
    policy["size"] = policy["size"] or 1_000
    return policy


def _open(
    draft: Draft,
    activation: Activation,
    loop: Loop,
    source: dict[str, Json],
    total: int | None,
    items: list[Json] | None,
) -> None:
    """Draft the start of a loop, then its stage with what its frames are given."""
    plan, step = draft.plan, activation.step
    loop_id = derive_id(plan.execution_id, activation.number, f"loop/{step}")
    stage_id = derive_id(plan.execution_id, activation.number, f"stage/{step}")
    policy = _policy(draft, loop)
    at_once = _rows_in_flight(draft, activation, loop)
    if at_once is not None and loop.mode is not Mode.SEQUENTIAL:
        policy |= _spread(at_once, total or 0, policy["size"])
    whole: dict[str, Json] = {"input": input_of(plan, draft.moment, activation)}
    if items is not None:
        whole["items"] = items
    document, ref = draft.externalize(whole)
    _start(draft, step, loop_id, _Collection(loop.mode, total, policy["size"], ref))
    draft.emit(
        StageOpened(
            node_name=step,
            stage_id=stage_id,
            kind="fanout" if loop.mode is Mode.FANOUT else "loop",
            loop_id=loop_id,
            dsl_ref=f"{plan.path}@{plan.catalog_version}#{step}",
            pool=draft.pool_of(step),
            total_rows=total,
            activation=activation.number,
            policy={**policy},
            source=source,
            document=document,
            payload_ref=ref,
        ),
        str(stage_id),
    )


def _start(draft: Draft, step: str, loop_id: int, rows: _Collection) -> None:
    """Draft the start of a loop, and of its fan-out where it is one."""
    draft.emit(
        LoopStarted(
            node_name=step,
            node_type="loop",
            status="started",
            loop_id=loop_id,
            mode=_MODES[rows.mode],
            collection_size=rows.total,
            collection_ref=None if rows.ref is None else rows.ref.uri,
        ),
        str(loop_id),
        current_index=0,
    )
    if rows.mode is Mode.FANOUT:
        shards = -(-(rows.total or 0) // rows.frame_size)
        draft.emit(
            LoopFanoutStarted(
                node_name=step, status="started", loop_id=loop_id, total_shards=shards
            ),
            str(loop_id),
            current_index=0,
        )
