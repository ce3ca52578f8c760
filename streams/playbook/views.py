"""How templates see a result, between steps and inside them alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def result_view(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a template sees under the name of a step or a task.

    `status`, `data` and `meta` are the envelope's, `result` is the envelope itself, and the
    keys of a data mapping can be named directly where they are none of these.
    """
    data = envelope.get("data")
    shown = {**data, **envelope} if isinstance(data, dict) else dict(envelope)
    shown["result"] = envelope
    return shown
