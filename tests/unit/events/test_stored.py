"""Rows of the log read natively: the same events as the reference's, or none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.events.codec import Codec, event_schema
from streams.events.model import Assigned, NewEvent
from streams.events.native import native
from streams.events.stored import StoredRow
from streams.schema.registry import MemoryRegistry
from tests.support.events.examples import codec, sealed
from tests.support.events.strategies import new_events

pytestmark = pytest.mark.skipif(native() is None, reason="the native module is not built")
CODEC = codec()
AT = datetime(2026, 11, 18, 12, 30, 0, 250_000)
CHAIN = bytes(range(32))


def row_of(event: NewEvent, seq: int = 7) -> StoredRow:
    one = sealed(event)
    return (seq, 70, 3, AT, bytes.fromhex(one.record["checksum"]), CHAIN, one.envelope)


@given(st.lists(new_events(), min_size=1, max_size=5))
def test_a_page_has_the_events_that_the_reference_decodes(events: list[NewEvent]) -> None:
    rows = [row_of(event, seq) for seq, event in enumerate(events, 1)]
    found = CODEC.stored_events(rows)
    for seq, (row, event) in enumerate(zip(rows, found, strict=True), 1):
        assigned = Assigned(seq, 70, 3, AT.replace(tzinfo=UTC), CHAIN.hex())
        assert event == CODEC.decode(row[6], assigned)
        assert event is not None
        assert event.ingest_time.tzinfo is UTC
        assert repr(event) == repr(CODEC.decode(row[6], assigned))


@given(new_events(), st.data())
def test_a_row_with_other_bytes_is_not_given_out_as_another_event(
    event: NewEvent, data: st.DataObject
) -> None:
    row = row_of(event)
    *before, envelope = row
    at = data.draw(st.integers(0, len(envelope) - 1))
    changed = bytearray(envelope)
    changed[at] ^= data.draw(st.integers(1, 255))
    (found,) = CODEC.stored_events([(*before, bytes(changed))])  # type: ignore[list-item]
    assert found is None or not CODEC.surely_match([bytes(changed)])[0]


@pytest.mark.parametrize("envelope", [b"", b"\x00\x00", bytes(40), b"x" * 400])
def test_bytes_that_are_no_envelope_are_left_to_the_reference(envelope: bytes) -> None:
    assert CODEC.stored_events([(1, 1, 1, AT, bytes(32), CHAIN, envelope)]) == [None]


@given(new_events())
def test_a_row_with_another_checksum_is_left_to_the_reference(event: NewEvent) -> None:
    row = row_of(event)
    assert CODEC.stored_events([(*row[:4], bytes(32), *row[5:])]) == [None]


def test_without_the_native_module_every_row_is_left_to_the_reference() -> None:
    plain = Codec(100001, event_schema(), MemoryRegistry(), natively=False)
    assert plain.stored_events([(1, 1, 1, AT, bytes(32), CHAIN, b"")]) == [None]
