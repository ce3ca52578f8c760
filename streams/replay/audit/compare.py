"""Comparison of a stored row with the row that the log gives. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import orjson

from streams.payload.content import key_of_uri
from streams.projector.digests import row_bytes, row_checksum
from streams.projector.rows import ResultRefRow, Row
from streams.replay.audit.port import ProjectedRow


def differences(stored: ProjectedRow, expected: Row) -> Iterator[str]:
    """Yield what differs; the stored checksum must be that of the expected row."""
    found, wanted = _json(stored.row), _json(expected)
    for name, value in wanted.items():
        if not _is_equal(name, found[name], value, expected):
            yield f"{name} is {found[name]!r}, from the log {value!r}"
    if not isinstance(expected, ResultRefRow):  # results have no checksum
        checksum = row_checksum(expected)
        if stored.checksum != checksum:
            yield f"checksum is {stored.checksum}, from the log {checksum}"


def _json(row: Row) -> dict[str, object]:
    """Return the columns as JSON, which is how they are stored."""
    found: dict[str, object] = orjson.loads(row_bytes(row))
    return found


def _is_equal(name: str, found: object, wanted: object, expected: Row) -> bool:
    if found == wanted:
        return True
    if isinstance(expected, ResultRefRow):
        if name == "last_seq":  # its expiry is later, and compared separately
            return isinstance(found, int) and found > expected.last_seq
        if isinstance(found, str) and isinstance(wanted, str):
            if name == "physical_uri":  # stored as the object's location
                return found.endswith(key_of_uri(wanted))
            if name == "expires_at":
                return datetime.fromisoformat(found) == datetime.fromisoformat(wanted)
    return False


def row_name(kind: str, row: Row) -> str:
    """Return the name of a row for messages."""
    return f"{kind} {row.key[0]} as of event {row.last_seq}"
