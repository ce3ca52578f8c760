"""Events of the golden corpus before they are sealed: recorded executions, and every event type."""

from __future__ import annotations

from collections.abc import Iterator

from streams.events.catalogue import catalogue
from tests.golden.payloads import Fields
from tests.golden.sealing import Unsealed
from tests.histories.envelopes import recorded as recorded_envelopes
from tests.histories.replay import recorded
from tests.support.events.examples import AT, codec, example, sealed

FIRST_ID = 500_001


def history(name: str) -> Iterator[Unsealed]:
    """Yield the events of a recorded execution."""
    for one in recorded(name):
        event = one.event
        yield Unsealed(
            {**one.envelope},
            event.seq,
            event.position,
            event.stream_version,
            event.ingest_time,
        )


def every_type() -> Iterator[Unsealed]:
    """Yield one event of every type and schema version, all optional fields included.

    They follow each other in one root of each kind, which is no execution: they are decoded, not
    folded.
    """
    seqs: dict[str, int] = {}
    for index, record in enumerate(_records()):
        seq = seqs[record["root_type"]] = seqs.get(record["root_type"], 0) + 1
        changed = {**record, "event_id": FIRST_ID + index}
        yield Unsealed(changed, seq, index + 1, 1, AT)


def _records() -> Iterator[Fields]:
    recordings = recorded_envelopes()
    for name, kind in catalogue().types.items():
        first = codec().record(bytes.fromhex(recordings[name]["envelope"]))
        yield first
        if first["schema_version"] != kind.version:
            key = f"example/{name}/{kind.version}"
            yield dict(sealed(example(name, idempotency_key=key)).record)
