"""What the event of a frame or a command tells of its changes of `ctx`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.errors import Refused
from streams.events.model import Json
from streams.results.inline import NAMES_BYTES, leaving
from streams.worker.attempt.context import Attempt
from streams.worker.attempt.results import encode, plain

CTX_BYTES = 8 * 1024
"""What an event carries of changed values; the others are a payload."""


class TooManyChanges(Refused):
    """Changes of `ctx` under more names than an event can tell."""

    def __init__(self, count: int) -> None:
        super().__init__(f"set_ctx: {count} names are too many; keep them under one")


async def told_changes(attempt: Attempt, changes: Mapping[str, Json]) -> dict[str, Any]:
    """Return the fields that tell the changes; what they refer to is durable by then.

    Raises:
        TooManyChanges: not even their names fit.
    """
    if not changes:
        return {}
    gone = leaving({name: encode(value) for name, value in changes.items()}, CTX_BYTES)
    kept = {name: value for name, value in changes.items() if name not in set(gone)}
    if not gone:
        return {"ctx": plain(kept)}
    if sum(map(len, gone)) > NAMES_BYTES:
        raise TooManyChanges(len(changes))
    group = await attempt.results.group("ctx", {name: changes[name] for name in gone})
    return {"ctx": plain(kept), "ctx_elsewhere": [group]}
