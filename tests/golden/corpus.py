"""Files of the golden corpus: sealed events as the log stores them, and what is expected of them.

docs/golden-corpus.md describes them for readers in other languages.
"""

from __future__ import annotations

import gzip
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from streams.replay.port import StoredEvent

FOLDER = Path(__file__).parent
FORMAT = 1
MANIFEST, PAYLOADS = "manifest.json", "payloads.json"
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """An event of the corpus and the root it belongs to."""

    root: str
    event: StoredEvent


@dataclass(frozen=True, slots=True)
class Log:
    """Events of one source, in the order of the log.

    The roots of a folded log are executions from their first event on; others are only decoded.
    """

    name: str
    is_folded: bool
    events: Sequence[Stored]


def manifest(logs: Sequence[Log]) -> bytes:
    """Return the list of the logs."""
    described = [
        {"name": log.name, "folded": log.is_folded, "events": len(log.events)} for log in logs
    ]
    return orjson.dumps({"format": FORMAT, "logs": described}, option=_READABLE)


def documented(payloads: Mapping[str, Line]) -> bytes:
    """Return what is expected of each payload."""
    return orjson.dumps(payloads, option=_READABLE | orjson.OPT_SORT_KEYS)


def log_lines(log: Log) -> bytes:
    """Return the events of a log, one line each."""
    return _lines(_line(one) for one in log.events)


def expected_lines(expected: Sequence[Line]) -> bytes:
    """Return what is expected after each event, one line each."""
    return _lines(expected)


def packed(lines: bytes) -> bytes:
    """Return lines as their file has them."""
    return gzip.compress(lines, mtime=0)


def read_logs(folder: Path = FOLDER) -> Iterator[Log]:
    """Yield the logs of a corpus."""
    for one in orjson.loads((folder / MANIFEST).read_bytes())["logs"]:
        lines = read_lines(folder, "logs", one["name"])
        yield Log(one["name"], one["folded"], [_stored(line) for line in lines])


def read_lines(folder: Path, kind: str, name: str) -> list[Line]:
    """Return the lines of a log, or of what is expected of it."""
    data = gzip.decompress((folder / kind / f"{name}.jsonl.gz").read_bytes())
    return [orjson.loads(line) for line in data.splitlines()]


_READABLE = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def _lines(lines: Iterator[Line] | Sequence[Line]) -> bytes:
    return b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in lines)


def _line(one: Stored) -> Line:
    event = one.event
    return {
        "root": one.root,
        "seq": event.seq,
        "position": event.position,
        "stream_version": event.stream_version,
        "ingest_time": event.ingest_time.isoformat().replace("+00:00", "Z"),
        "checksum": event.checksum.hex(),
        "chain": event.chain.hex(),
        "envelope": b64encode(event.envelope).decode(),
    }


def _stored(line: Line) -> Stored:
    event = StoredEvent(
        seq=line["seq"],
        position=line["position"],
        stream_version=line["stream_version"],
        ingest_time=datetime.fromisoformat(line["ingest_time"]),
        checksum=bytes.fromhex(line["checksum"]),
        chain=bytes.fromhex(line["chain"]),
        envelope=b64decode(line["envelope"], validate=True),
    )
    return Stored(line["root"], event)
