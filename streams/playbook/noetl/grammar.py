"""What a document in NoETL's spelling may contain. An unknown key has no effect: a warning."""

from __future__ import annotations

from streams.playbook.problem import Severity
from streams.playbook.projections import PROJECTIONS
from streams.playbook.rate import RATE
from streams.playbook.result_policy import AUTO, STORES
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
)

VERSIONS = ("noetl.io/v2", "noetl.io/v10")
ACTIONS = ("continue", "retry", "jump", "break", "fail")
MODES = ("sequential", "parallel", "cursor", "fanout")

_any = Anything()
_condition = Either((Text(), Flag()))


def _fields(name: str, fields: dict[str, Shape], *required: str) -> Fields:
    return Fields(name, fields, "", required, unknown=Severity.WARNING)


_values = Fields("values", {}, rest=_any)
_then: dict[str, Shape] = {
    "do": Choice(ACTIONS),
    "attempts": Either((Number("", 1), Text())),
    "backoff": Text(),
    "delay": Either((Number("", 0, whole=False), Text())),
    "to": Text(),
    "set": Either((_values, Nothing())),
}
_verdict = _fields("verdict", _then)
_rule = _fields(
    "rule",
    {
        "when": _condition,
        "then": _verdict,
        "else": Either((_fields("else", {**_then, "then": _verdict}), Nothing())),
    },
)
_rules = _fields("policy", {"rules": Items(_rule)})
_store = _fields("store", {"kind": Choice((AUTO, *STORES)), "ttl": Text(), "scope": Text()})
_output = _fields(
    "output",
    {
        "store": Either((_store, Text())),
        "inline_max_bytes": Number("", 0),
        "output_select": Items(Text()),
        "select": Items(_fields("selection", {"path": Text(), "as": Text()}, "path")),
    },
)
TASK_FIELDS: dict[str, Shape] = {
    "name": Text(),
    "kind": Text(),
    "desc": Text(),
    "spec": Fields("task spec", {"policy": _rules, "rate": RATE}, rest=_any),
    "set": Either((_values, Nothing())),
    "input": Either((_values, Nothing(), Text())),
    "output": _output,
    "output_select": Either((Items(Text()), _values)),
}
_task = Fields("task", TASK_FIELDS, required=("kind",), rest=_any)
_frame = _fields(
    "frame",
    {
        "max_rows": Either((Number("", 1), Text())),
        "row_concurrency": Either((Number("", 1), Text())),
        "process": Choice(("row", "frame")),
        "lease_seconds": Either((Number("", 1, whole=False), Text())),
        "heartbeat_seconds": Either((Number("", 1, whole=False), Text())),
        "max_seconds": Either((Number("", 1, whole=False), Text())),
        "max_bytes": Either((Number("", 1), Text())),
    },
)
_loop = _fields(
    "loop",
    {
        "in": Either((Text(), Items(_any), _values, Number())),
        "cursor": _fields(
            "cursor",
            {
                "kind": Choice(("postgres",)),
                "auth": Text(),
                "credential": Text(),
                "claim": Text(),
                "options": _any,
            },
            "kind",
            "claim",
        ),
        "iterator": Text(),
        "spec": _fields(
            "loop spec",
            {
                "mode": Choice(MODES),
                "max_in_flight": Either((Number("", 1), Text())),
                "policy": _any,
                "frame": _frame,
            },
        ),
    },
)
_arc = _fields("arc", {"step": Text(), "when": _condition, "set": _values}, "step")
_next = _fields(
    "next",
    {
        "spec": _fields(
            "next spec",
            {"mode": Choice(("exclusive", "inclusive")), "on_no_match": Choice(("quiet", "end"))},
        ),
        "arcs": Either((Items(_arc), Nothing())),
    },
    "arcs",
)
STEP_FIELDS: dict[str, Shape] = {
    "step": Text(),
    "desc": Text(),
    "tool": Either((_task, Items(_task))),
    "input": Either((_values, Nothing())),
    "set": Either((_values, Nothing())),
    "output": _output,
    "loop": _loop,
    "next": _next,
    "spec": _fields("step spec", {"policy": _any}),
}
_step = Fields("step", STEP_FIELDS, required=("step",), rest=_any)
_action = Fields("action", {"name": Text(), "tool": _task}, required=("name", "tool"), rest=_any)
_entry = Fields("keychain entry", {"name": Text(), "kind": Text()}, required=("name",), rest=_any)
DOCUMENT = _fields(
    "playbook",
    {
        "apiVersion": Choice(VERSIONS),
        "kind": Choice(("Playbook",)),
        "metadata": Fields("metadata", {"name": Text(), "path": Text()}, rest=_any),
        "workload": Either((_values, Nothing())),
        "workbook": Items(_action),
        "keychain": Items(_entry),
        "executor": Fields("executor", {}, rest=_any),
        "workflow": Items(_step),
        "projections": PROJECTIONS,
        "spec": _any,
        "tracing": _any,
    },
    "apiVersion",
    "kind",
    "workflow",
)
