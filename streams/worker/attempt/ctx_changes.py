"""Serialized changes of `ctx` and `vars` in the event of a frame or command."""

from __future__ import annotations

from collections.abc import Mapping

from streams.errors import Refused
from streams.events.model import Json
from streams.events.reading import json_of
from streams.results.limits import CTX_BYTES, VARS_BYTES
from streams.results.spill import encode_result, normalized, spill
from streams.worker.attempt.context import Attempt


class TooManyChanges(Refused):
    """Changes of `ctx` under more names than an event can carry."""

    def __init__(self, count: int) -> None:
        super().__init__(f"set_ctx: {count} names are too many; nest them under one")


class VarsTooLarge(Refused):
    """Values of a step that an event cannot carry."""

    def __init__(self, found: int) -> None:
        super().__init__(
            f"set_vars: {found} bytes are more than the {VARS_BYTES} of a step's values; "
            "use set_ctx, whose values may have any size"
        )


def serialize_vars(changes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the event's field for the values of a step.

    Raises:
        VarsTooLarge: they do not fit.
    """
    if not changes:
        return {}
    if (found := len(encode_result(changes))) > VARS_BYTES:
        raise VarsTooLarge(found)
    return {"vars": normalized(changes)}


async def serialize_ctx_changes(attempt: Attempt, changes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the event's fields for the changes; their payloads are durable.

    Raises:
        TooManyChanges: even the names do not fit.
    """
    if not changes:
        return {}
    parts = spill(changes, CTX_BYTES, encode_result)
    inline = normalized(parts.inline)
    if not parts.spilled:
        return {"ctx": inline}
    if parts.has_too_many_names:
        raise TooManyChanges(len(changes))
    group = await attempt.results.spill("ctx", parts.spilled)
    return {"ctx": inline, "ctx_elsewhere": [json_of(group)]}
