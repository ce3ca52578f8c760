"""Events of the log's rows, read natively: the fast path of `Codec.decode`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeAlias

import orjson

from streams.events.canonical import from_millis
from streams.events.model import Event, IpcHint, PayloadRef, Root
from streams.events.native import NativeModule

StoredRow: TypeAlias = tuple[int, int, int, datetime, bytes, bytes, bytes]
"""What the log has of an event: seq, position, stream_version, ingest_time (UTC, without a zone),
checksum, chain, envelope."""
ReadRows: TypeAlias = Callable[[list[StoredRow]], list[Event | None]]

root_of = lru_cache(maxsize=256)(Root)


def row_reader(module: NativeModule, header: bytes) -> ReadRows:
    """Return a reader of rows whose envelopes begin with `header`; None: it is not sure."""
    reader = module.EventReader(
        header=header,
        event=Event,
        payload_ref=PayloadRef,
        ipc_hint=IpcHint,
        root_of=root_of,
        time_of=from_millis,
        in_utc=_in_utc,
        loads=orjson.loads,
    )
    read: ReadRows = reader.read
    return read


def _in_utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)
