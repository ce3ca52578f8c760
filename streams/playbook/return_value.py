"""Envelope of a playbook's `return` value."""

from __future__ import annotations

from streams.events.model import Json

ENVELOPE_PARTS = ("status", "data", "meta", "error")


def as_envelope(value: Json) -> dict[str, Json]:
    """Wrap a value in a result envelope, unless it is one."""
    if not isinstance(value, dict) or value.get("status") not in ("success", "error"):
        return {"status": "success", "data": value}
    if "data" not in value and not value.keys() <= set(ENVELOPE_PARTS):
        return {"status": "success", "data": value}
    return {part: value[part] for part in ENVELOPE_PARTS if part in value}
