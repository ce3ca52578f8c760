"""Scope of a sink's templates, and the reference to what it wrote."""

from __future__ import annotations

from collections.abc import Mapping

from streams.events.model import Json
from streams.playbook.model import Sink


def envelope_for(
    sink: Sink, scope: Mapping[str, object], ran: Mapping[str, object]
) -> Mapping[str, object] | None:
    """Return the envelope to persist; None: the sink does not apply.

    Raises:
        Refused: the sink's `when` cannot be rendered.
    """
    envelope: object = ran if sink.subject is None else sink.subject.render(scope)
    if not isinstance(envelope, Mapping):
        return None
    status = "error" if envelope.get("status") == "error" else envelope.get("status", "success")
    if status != sink.on and not (sink.on == "always" and status in ("success", "error")):
        return None
    if sink.when is not None and not sink.when.render(sink_scope(scope, envelope)):
        return None
    return envelope


def sink_scope(scope: Mapping[str, object], envelope: Mapping[str, object]) -> dict[str, object]:
    """Return the scope of a sink's templates: `result` and `data` unwrapped, `this` whole.

    An error without data is not unwrapped: there `result.error` is the reason.
    """
    parts = ("status", "data", "meta", "error")
    this = {part: envelope.get(part) for part in parts}
    is_bare = this["status"] == "error" and this["data"] is None
    data = this if is_bare else this["data"]
    return {**scope, "result": data, "data": data, "this": this}


def reference_in(configured: Json, data: Json) -> Json:
    """Return the reference to what was written: as the tool reports it, else as configured."""
    parts = ("store", "key", "range")
    if isinstance(configured, dict) and configured.get("range"):
        return configured
    if isinstance(data, dict) and data.keys() >= set(parts) and data.keys() & {"rows", "row_count"}:
        return {part: data[part] for part in parts}
    return data if configured is None else configured
