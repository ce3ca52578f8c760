"""Recorded envelopes: what was asked, and the bytes that were sealed, one per type and version.

`python -m tests.histories.envelopes` adds the types that are missing. It never changes
what was recorded: those bytes are in logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from streams.events.catalogue import catalogue
from streams.events.model import IpcHint, NewEvent, PayloadRef, Root
from tests.support.events.examples import TYPES, example, sealed

FILE = Path(__file__).with_suffix(".json")


def recorded() -> dict[str, dict[str, Any]]:
    """Return what was recorded, by event type; later versions by `type@version`."""
    found: dict[str, dict[str, Any]] = orjson.loads(FILE.read_bytes())
    return found


def name_of(type: str) -> str:
    """Return the name under which the newest version of a type is recorded."""
    version = catalogue().types[type].version
    return type if version == 1 else f"{type}@{version}"


def event_of(fields: Mapping[str, Any]) -> NewEvent:
    """Return the event that was asked to be sealed."""
    made = {**fields, "root": Root(**fields["root"])}
    made["event_time"] = datetime.fromisoformat(fields["event_time"])
    if (ref := fields["payload_ref"]) is not None:
        hint = {**ref["ipc"], "valid_until": datetime.fromisoformat(ref["ipc"]["valid_until"])}
        made["payload_ref"] = PayloadRef(**{**ref, "ipc": IpcHint(**hint)})
    return NewEvent(**made)


def _record(type: str) -> dict[str, Any]:
    event = example(type)
    one = sealed(event)
    return {
        "event": asdict(event),
        "checksum": one.record["checksum"],
        "digest": one.digest.hex(),
        "envelope": one.envelope.hex(),
    }


def main() -> None:
    """Add what is missing."""
    known = recorded() if FILE.exists() else {}
    for type in TYPES:
        if (name := name_of(type)) not in known:
            known[name] = _record(type)
    FILE.write_bytes(orjson.dumps(known, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main()
