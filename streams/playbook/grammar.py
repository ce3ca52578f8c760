"""What a playbook may contain: the one description that the check and the JSON Schema read."""

from __future__ import annotations

import json

from streams.events.model import Json
from streams.playbook.model import Do, Mode
from streams.playbook.projections import PROJECTIONS
from streams.playbook.rate import RATE
from streams.playbook.result_policy import AUTO, CODECS, SCOPES, STORES
from streams.playbook.shape import (
    Anything,
    Choice,
    Either,
    Fields,
    Flag,
    Items,
    Nothing,
    Number,
    Shape,
    Text,
    schema,
)
from streams.playbook.sinks.storages import FORMATS, MODES, ON, STORAGES
from streams.playbook.tool_kinds import kinds
from streams.playbook.yaml_document import Authored

VERSIONS = ("noetl.io/v1", "noetl.io/v2")
BACKOFFS = ("fixed", "linear", "exponential")
ON_ERROR = ("fail", "continue")

_condition = Either((Text(), Flag()), "An expression; what follows happens when it holds.")
_changes = Either((Fields("changes", {}, rest=Anything()), Text()), "Names and their new values.")
_verdict: dict[str, Shape] = {
    "do": Choice(tuple(Do), "What to make of the outcome."),
    "attempts": Number("How often the task is tried, the first time included.", 1),
    "backoff": Choice(BACKOFFS, "How the delay grows."),
    "delay": Number("Seconds before the next try.", 0, whole=False),
    "to": Text("The label to jump to."),
    "set_iter": _changes,
    "set_vars": _changes,
    "set_ctx": _changes,
}
_rule = Fields(
    "rule",
    {
        "expr": _condition,
        "else": Either((Fields("verdict", _verdict), Nothing())),
        **_verdict,
    },
    "One line of eval: the first whose expr holds is followed.",
)
_rules = Items(_rule)
_kind = Choice((AUTO, *STORES), "Where it goes; auto chooses by size.")
_store = Fields(
    "store",
    {
        "kind": _kind,
        "ttl": Text("Time to live: 30m, 1h, 7d, 1y, permanent."),
        "compression": Choice(CODECS),
        "scope": Choice(SCOPES, "What it expires with."),
    },
    "Where a result too large for its event goes.",
)
_result = Fields(
    "result",
    {
        "store": Either((_store, _kind)),
        "inline_max_bytes": Number("A larger result leaves its event.", 0),
        "preview_max_bytes": Number("Size of the preview in its event.", 0),
        "select": Items(
            Fields(
                "selection",
                {"path": Text("A JSONPath."), "as": Text("The field's name.")},
                required=("path",),
            ),
            "Small fields that stay at hand, as `extracted`.",
        ),
    },
    "What becomes of the task's result.",
)
_spec = Fields(
    "spec",
    {"result": _result, "rate": RATE},
    "Settings of the runtime for this task.",
    rest=Anything(),
)
_storage = Choice(tuple(STORAGES), "Where it goes; event_log: nowhere else.")
SINK = Fields(
    "sink",
    {
        "when": _condition,
        "on": Choice(ON, "Which results are persisted; default: success."),
        "storage": _storage,
        "tool": _storage,
        "auth": Text("The name of a credential."),
        "credential": Text("As auth."),
        "credentialRef": Text("As auth; deprecated."),
        "spec": Fields("sink spec", {}, "What this storage needs to know.", rest=Anything()),
        "format": Choice(FORMATS, "How files and objects are written."),
        "mode": Choice(MODES, "What becomes of what is there already."),
        "key": Either((Text(), Items(Text())), "Columns that identify a row."),
        "table": Text("The table, which must be there."),
        "data": Anything("What to persist; default: the result."),
        "args": Anything("As data."),
        "statement": Text("Done instead of `data`; values are bound to its parameters."),
        "params": Fields("sink params", {}, rest=Anything()),
        "batch": Flag("Whether the rows of a list go together."),
        "chunk_size": Number("Rows that go together at most.", 1),
        "concurrency": Number("Writes at the same time.", 1),
        "eval": _rules,
    },
    "Persists a result beside the log.",
)
_task = Fields(
    "task",
    {
        "kind": Text("The tool: " + ", ".join(kinds()) + ", or workbook."),
        "action": Text("A named action of the workbook."),
        "eval": _rules,
        "spec": _spec,
        "sink": SINK,
    },
    "One call of a tool; every other key is the tool's own.",
    rest=Anything("A key of the tool; texts in it are templates."),
)
_pipeline = Items(Fields("labelled task", {}, "A label and its task.", rest=_task))
_frame_policy = Fields(
    "frame policy",
    {
        "size": Number("Rows of a frame.", 1),
        "duration_ms": Number("How long a frame may take.", 1),
        "memory_bytes": Number("Bytes of output a frame may hold.", 1),
        "parallelism": Number("Frames of this step that one worker runs at once.", 1),
        "row_concurrency": Number("Rows of a frame at once.", 1),
    },
)
_cursor = Fields(
    "cursor",
    {
        "kind": Choice(("postgres", "kafka")),
        "query": Text("Rows to go over, in the order of `key`."),
        "key": Text("The column that orders the rows; unique and not null."),
        "claim": Text("A statement that stamps rows with the frame and returns them."),
        "topic": Text(),
        "auth": Text("The name of a credential."),
        "credential": Text("The same as auth."),
        "credentialRef": Text("The same as auth; deprecated."),
        "dsn": Text(),
    },
    "Rows that are not a list.",
    required=("kind",),
    rest=Anything(),
)
_loop = Fields(
    "loop",
    {
        "in": Either((Text(), Items(Anything())), "The list to go over."),
        "cursor": _cursor,
        "iterator": Text("The row's name, as iter.<name>."),
        "spec": Fields(
            "loop spec",
            {
                "mode": Choice(tuple(Mode)),
                "max_in_flight": Number("Frames of the step at once.", 1),
            },
        ),
        "frame_policy": Either((_frame_policy, Nothing()), "null: one row a frame."),
    },
)
_arc = Fields(
    "arc",
    {"step": Text(), "when": _condition, "args": _changes},
    "A way to a next step.",
    required=("step",),
)
_arcs = Items(Either((Text(), _arc)))
_next = Either(
    (
        Text(),
        _arcs,
        Fields(
            "next",
            {
                "spec": Fields("next spec", {"mode": Choice(("exclusive", "inclusive"))}),
                "arcs": _arcs,
            },
            required=("arcs",),
        ),
    ),
    "Where to go when the step has ended.",
)


def is_flat(step: Authored) -> bool:
    """Return whether a step names its tool by a word, so that the tool's keys are the step's."""
    named = isinstance(step.get("tool"), str) or "type" in step
    return named or ("action" in step and "tool" not in step)


_step = Fields(
    "step",
    {
        "step": Text("Its name."),
        "desc": Text("What it is for."),
        "when": _condition,
        "tool": Either((Text(), _task, _pipeline), "One tool, or labelled tasks in order."),
        "type": Text("The tool, as noetl.io/v1 writes it."),
        "action": Text("A named action of the workbook."),
        "eval": _rules,
        "loop": _loop,
        "next": _next,
        "set": Either((Fields("changes", {}, rest=Anything()), Text()), "Changes of ctx."),
        "on_error": Choice(ON_ERROR, "Whether a failure ends the execution."),
        "pool": Text("The class of worker that runs it."),
        "spec": Fields(
            "step spec", {"loop_mode": Choice(tuple(Mode)), "result": _result}, rest=Anything()
        ),
        "sink": SINK,
    },
    required=("step",),
    rest=Anything("A key of the tool that `tool` or `type` names."),
    is_open=is_flat,
)
STEP_FIELDS = frozenset(_step.fields)
_action = Fields(
    "action",
    {"name": Text(), "tool": Either((Text(), _task)), "type": Text(), "kind": Text()},
    rest=Anything(),
)
_credential = Fields("credential", {"name": Text(), "as": Text()}, required=("name",))
PLAYBOOK = Fields(
    "playbook",
    {
        "apiVersion": Choice(VERSIONS),
        "kind": Choice(("Playbook",)),
        "metadata": Fields(
            "metadata",
            {
                "name": Text(),
                "path": Text("Where it is in the catalog."),
                "description": Text(),
                "labels": Fields("labels", {}, rest=Anything()),
                "pool": Text("The pool of steps that name none."),
            },
            rest=Anything(),
        ),
        "name": Text("As noetl.io/v1 writes it."),
        "path": Text("As noetl.io/v1 writes it."),
        "description": Text(),
        "workload": Either(
            (Fields("workload", {}, rest=Anything()), Nothing()), "Inputs and their defaults."
        ),
        "workbook": Either((Items(_action), Fields("workbook", {}, rest=_action))),
        "credentials": Either(
            (Items(Either((Text(), _credential))), Fields("aliases", {}, rest=Text()))
        ),
        "workflow": Items(_step),
        "projections": PROJECTIONS,
        "return": Anything("The execution's result."),
        "sink": SINK,
    },
    required=("apiVersion", "kind", "workflow"),
)


def json_schema() -> str:
    """Return the JSON Schema of playbooks, for editors."""
    definitions: dict[str, Json] = {}
    top = schema(PLAYBOOK, definitions)
    page = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "NoETL playbook",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(page, indent=2) + "\n"
