"""Reading a trigger record's value: plain JSON."""

from __future__ import annotations

from typing import Any

from streams.trigger.record import read_json


class JsonReader:
    """Reads JSON only."""

    async def fields(self, value: bytes | None) -> dict[str, Any]:
        """Return the fields of a JSON object."""
        return read_json(value)
