"""What the code of today finds in the golden corpus: checksums, and digests of what it read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from hashlib import sha256

from blake3 import blake3

from streams.events.canonical import canonical
from streams.events.catalogue import catalogue
from streams.events.model import Assigned, Event
from streams.events.types import typed
from streams.events.upcast import upcast
from streams.projector.core import View, absorb, checksums
from streams.replay.port import NO_CHAIN
from tests.golden.corpus import Line, Log, Stored
from tests.support.events.examples import codec


def expected_of(log: Log) -> Iterator[Line]:
    """Yield what is expected after each event; its checksum and its chain are verified."""
    chains: dict[str, bytes] = {}
    views: dict[str, View] = {}
    for stored in log.events:
        event = upcast(_verified(stored, chains), catalogue())
        line = {
            "root": stored.root,
            "seq": event.seq,
            "event_id": str(event.event_id),
            "type": event.type,
            "body": _body(event),
        }
        if log.is_folded:
            view, _ = absorb(views.get(stored.root, View()), event)
            views[stored.root] = view
            line |= {"checksums": checksums(view), "payloads": view.payloads.digest}
        else:
            assert typed(event) is not None
        yield line


def _verified(stored: Stored, chains: dict[str, bytes]) -> Event:
    one = stored.event
    assert codec().verify(one.envelope), f"{stored.root} {one.seq}: another checksum"
    chain = sha256(chains.get(stored.root, NO_CHAIN) + one.checksum).digest()
    assert chain == one.chain, f"{stored.root} {one.seq}: another chain"
    chains[stored.root] = chain
    assigned = Assigned(
        seq=one.seq,
        position=one.position,
        stream_version=one.stream_version,
        ingest_time=one.ingest_time.replace(tzinfo=UTC),
        chain=one.chain.hex(),
    )
    event = codec().decode(one.envelope, assigned)
    assert event.checksum == one.checksum.hex()
    assert str(event.root) == stored.root
    return event


def _body(event: Event) -> str:
    """Return the digest of what the schema of an event's type describes."""
    fields = {
        "meta": dict(event.meta),
        "context": event.context,
        "result": event.result,
        "current_item": event.current_item,
    }
    return blake3(canonical(fields)).hexdigest()
