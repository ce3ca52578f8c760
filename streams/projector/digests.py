"""Checksums of rows and of an execution's whole state. Pure.

A row's checksum is the BLAKE3 of its canonical JSON. Rows that will not change any more are
chained as they end, in the order of the log: an execution's checksum then depends on all of its
rows, and takes no memory for those that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import orjson
from blake3 import blake3

from streams.projector.rows import (
    PROJECTION_VERSION,
    CommandRow,
    FrameRow,
    ResultEndRow,
    ResultRefRow,
    Row,
    StageRow,
)

_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z
EXECUTION, STAGE, FRAME, COMMAND, RESULT, ALL = (
    "execution",
    "stage",
    "frame",
    "command",
    "result_ref",
    "all",
)
KIND_OF: Mapping[type[Row], str] = {
    StageRow: STAGE,
    FrameRow: FRAME,
    CommandRow: COMMAND,
    ResultRefRow: RESULT,
    ResultEndRow: RESULT,
}
"""The projection that each row belongs to; the execution's own row never ends."""
PARTS = (STAGE, FRAME, COMMAND, RESULT)


def row_bytes(row: Row) -> bytes:
    """Return the canonical JSON of a row."""
    return orjson.dumps(row, option=_CANONICAL)


def row_checksum(row: Row) -> str:
    """Return the checksum of a row."""
    return blake3(row_bytes(row)).hexdigest()


class RowChain(NamedTuple):
    """Texts in order, such as the rows that have ended: how many, and their chained digest."""

    length: int = 0
    digest: str = ""

    def after(self, text: bytes) -> RowChain:
        """Return the chain with one more text."""
        digest = blake3(self.digest.encode() + text).hexdigest()
        return RowChain(self.length + 1, digest)


class EndedRows(NamedTuple):
    """The chains of each kind."""

    stage: RowChain = RowChain()
    frame: RowChain = RowChain()
    command: RowChain = RowChain()
    result_ref: RowChain = RowChain()

    def after(self, rows: Iterable[Row]) -> EndedRows:
        """Return the chains with more rows."""
        chains = self._asdict()
        for row in rows:
            kind = KIND_OF[type(row)]
            chains[kind] = chains[kind].after(row_bytes(row))
        return EndedRows(**chains)


def state_checksums(execution: Row, ended: EndedRows, still_open: Iterable[Row]) -> dict[str, str]:
    """Return the checksum of each projection of an execution, and `all` over them."""
    rows: dict[str, list[Row]] = {kind: [] for kind in PARTS}
    for row in still_open:
        rows[KIND_OF[type(row)]].append(row)
    found = {EXECUTION: _digest([PROJECTION_VERSION, execution])}
    for kind, chain in ended._asdict().items():
        ordered = sorted(rows[kind], key=lambda row: row.key)
        found[kind] = _digest([PROJECTION_VERSION, list(chain), ordered])
    found[ALL] = _digest(found)
    return found


def _digest(value: object) -> str:
    return blake3(orjson.dumps(value, option=_CANONICAL)).hexdigest()
