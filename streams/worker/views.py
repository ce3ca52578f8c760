"""How templates see results: an envelope, with its data's own keys within reach."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from streams.envelope.model import Json
from streams.playbook.views import result_view
from streams.worker.port import Outcome

_MISSING = object()
_PATH_PART = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def task_view(outcome: Outcome, extracted: dict[str, Json] | None) -> dict[str, Any]:
    """Return what later templates see under a task's label, and as `_prev`."""
    envelope: dict[str, Any] = {
        "status": outcome.status,
        "data": outcome.data,
        "meta": outcome.meta,
    }
    if outcome.error is not None:
        envelope["error"] = outcome.error
    if extracted is None:
        return result_view(envelope)
    envelope |= {"extracted": extracted, "_ref": None}
    return {**extracted, **result_view(envelope)}


def outcome_view(
    kind: str, outcome: Outcome, extracted: dict[str, Json] | None, attempt: int
) -> dict[str, Any]:
    """Return what the rules of `eval` see as `outcome`."""
    shown: dict[str, Any] = {**_BLANK.get(kind, {}), **outcome.detail}
    shown["status"] = outcome.status
    shown["data"] = outcome.data
    shown["meta"] = outcome.meta
    shown["error"] = outcome.error
    shown["attempt"] = attempt
    shown["result"] = outcome.data
    if extracted is not None:
        shown["result"] = {
            "status": outcome.status,
            "data": outcome.data,
            "meta": outcome.meta,
            "extracted": extracted,
            "_ref": None,
        }
    return shown


# A rule may ask for a status even of a call that got no answer at all.
_BLANK: Mapping[str, Mapping[str, Any]] = {
    "http": {"http": {"status": None, "headers": {}}},
    "postgres": {"pg": {"code": None}},
}


def extract(spec: Mapping[str, Json], data: Json) -> dict[str, Json] | None:
    """Return the small fields that `spec.result.select` names; None where nothing is asked.

    A field whose path leads nowhere is left out, so that `default` works on it.
    """
    result = spec.get("result")
    if not isinstance(result, dict):
        return None
    found: dict[str, Json] = {}
    wanted = result.get("select")
    for one in wanted if isinstance(wanted, list) else ():
        if not isinstance(one, dict):
            continue
        value = _follow(data, _path(str(one.get("path", "$"))))
        if value is not _MISSING:
            found[str(one.get("as") or one.get("path"))] = value
    return found


def _follow(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        if isinstance(part, int):
            if not isinstance(value, list) or part >= len(value):
                return _MISSING
            value = value[part]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return _MISSING
    return value


@lru_cache(maxsize=4096)
def _path(text: str) -> tuple[str | int, ...]:
    """Read `$.a.b[0]['c']`; the leading `$.` may be left out."""
    rest = text.removeprefix("$")
    if rest and rest[0] not in ".[":
        rest = "." + rest
    parts = [
        int(index) if index else name or quoted or doubly
        for name, index, quoted, doubly in _PATH_PART.findall(rest)
    ]
    return tuple(parts)
