"""What an event says of a stored result: its selected fields and its preview."""

from __future__ import annotations

import asyncio

import orjson

from streams.errors import Refused
from streams.events.model import Json
from streams.playbook.result_policy import ResultPolicy
from streams.results.limits import EXTRACTED_BYTES
from streams.results.preview import preview_of
from streams.results.spill import encode_result, is_event_json

IN_A_THREAD_BYTES = 1 << 20
"""Above this size, selecting fields would delay heartbeats and other rows."""


class NotInEvents(Refused):
    """An event cannot carry the selected fields of a result."""


async def selected_fields(policy: ResultPolicy, data: Json, size: int) -> dict[str, Json]:
    """Return the fields of a result that its policy selects, as an event carries them.

    Raises:
        NotInEvents: an event cannot carry them.
    """
    if not policy.select or size < IN_A_THREAD_BYTES:
        return _checked(policy.extract(data))
    return _checked(await asyncio.to_thread(policy.extract, data))


def event_preview(data: Json, limit: int) -> Json:
    """Return the beginning of a result; None where an event cannot carry it."""
    preview = encode_result(preview_of(data, limit))
    found: Json = orjson.loads(preview) if is_event_json(preview) else None
    return found


def _checked(extracted: dict[str, Json]) -> dict[str, Json]:
    if not extracted:
        return {}
    data = encode_result(extracted)
    if len(data) > EXTRACTED_BYTES:
        why = f"the selected fields have {len(data)} bytes, {EXTRACTED_BYTES} are allowed"
        raise NotInEvents(f"{why}; select less of the result")
    if not is_event_json(data):
        why = "a selected field holds a NUL character or is nested too deep"
        raise NotInEvents(f"{why}, and no event can carry it")
    found: dict[str, Json] = orjson.loads(data)
    return found
