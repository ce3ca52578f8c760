"""The native module makes and reads the same bytes as the reference, with the same errors."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import example as shown
from hypothesis import given
from hypothesis import strategies as st

from streams.events.codec import Codec, event_schema
from streams.events.errors import BadEvent, UndecodableEvent
from streams.events.model import NewEvent
from streams.events.native import native, shape, understands
from streams.events.seal import INLINE_MAX_BYTES
from streams.events.sealer import Sealer
from streams.log.rows import new_event_row, new_event_rows
from streams.schema.registry import MemoryRegistry
from tests.support.events.examples import (
    AT,
    PRODUCER,
    TYPES,
    catalogue,
    example,
    full_payload,
    sealer,
)
from tests.support.events.strategies import damaged_events, new_events

needs_native = pytest.mark.skipif(native() is None, reason="the native sealer is not built here")
PARTS = (
    "record",
    "kind",
    "event_id",
    "root_id",
    "idempotency_key",
    "expected_version",
    "claim",
    "reference",
    "digest",
    "envelope",
)


class Word(StrEnum):
    """Text that is not exactly text."""

    YES = "yes"


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1])
    | st.floats()
    | st.text(max_size=20)
    | st.text(st.characters(categories=("Cs", "Cc", "Lo", "So")), max_size=6)
    | st.sampled_from([Word.YES, b"bytes", AT, (1, 2), math.nan, -0.0, 1e300, 5e-324, 1e16])
)
wild_json = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(), max_size=8) | st.integers(), inner, max_size=4)
    ),
    max_leaves=15,
) | st.integers(0, 300).map(nested)


@st.composite
def wild_events(draw: st.DrawFn) -> NewEvent:
    """An event whose user data may be anything at all."""
    event = draw(new_events())
    where = draw(st.sampled_from(["context", "result", "current_item", "error"]))
    text = draw(st.text(max_size=30))
    changes: dict[str, Any] = {where: text if where == "error" else draw(wild_json)}
    return replace(event, **changes)


@st.composite
def badly_referring_events(draw: st.DrawFn) -> NewEvent:
    """An event one value of whose payload reference was exchanged."""
    hint = full_payload().ipc
    junk = draw(st.sampled_from([None, "", "\x00", "\ud800", "x" * 201, -1, 2**53, True, 1.5]))
    name = draw(st.sampled_from(["uri", "sha256", "media_type", "byte_length", "row_count", "ipc"]))
    changes: dict[str, Any] = {name: junk}
    if name == "ipc":
        changes = {"ipc": replace(hint, **{draw(st.sampled_from(["node_id", "shm_name"])): junk})}
    return example("frame.committed", payload_ref=replace(full_payload(), **changes))


def sealed(event: NewEvent, *, natively: bool) -> Any:
    """Return all that is known of the sealed event, or of why there is none."""
    try:
        one = sealer(PRODUCER, natively)(event, 5001)
    except BadEvent as error:
        return type(error), error.event_type, error.field, str(error)
    except Exception as error:  # noqa: BLE001 - what is not refused properly must also be the same
        return type(error), str(error)
    return {name: getattr(one, name) for name in PARTS}


@needs_native
@given(new_events() | damaged_events() | wild_events() | badly_referring_events())
@shown(example("step.exit", result={"deep": nested(199)}))
@shown(example("step.exit", result={"deep": nested(200)}))
@shown(example("step.exit", result={"\ud800": 1}))
@shown(example("step.exit", result=OrderedDict(b=1, a=Word.YES)))
@shown(example("step.exit", result="x" * (INLINE_MAX_BYTES - 200)))
@shown(example("step.exit", result="é" * (INLINE_MAX_BYTES // 2)))
@shown(example("step.exit", event_time=AT + timedelta(microseconds=999)))
@shown(example("step.exit", event_time=AT.replace(year=1)))
@shown(example("step.exit", event_time=AT.replace(year=1969)))
@shown(example("step.exit", event_time=AT.replace(year=9999, month=2, day=28)))
@shown(example("step.exit", error="two\nlines, \x1f and \x7f"))
def test_both_make_the_same_of_any_event(event: NewEvent) -> None:
    assert sealed(event, natively=True) == sealed(event, natively=False)


@needs_native
@pytest.mark.parametrize("name", TYPES)
def test_it_seals_ordinary_events_itself_or_it_would_be_useless(name: str) -> None:
    one = sealer(PRODUCER, natively=True)(example(name), 5001)

    assert isinstance(one, native().Sealed)  # type: ignore[union-attr]


@needs_native
@given(new_events())
def test_rows_are_the_same_bytes_whoever_sealed(event: NewEvent) -> None:
    module: Any = native()
    natively, here = (sealer(PRODUCER, way)(event, 5001) for way in (True, False))

    assert new_event_rows([[natively]]) == new_event_rows([[here]])
    made = module.rows([[natively], [natively, here]], 9, new_event_row)
    assert made == module.rows([[here], [here, natively]], 9, new_event_row)


@st.composite
def damaged_envelopes(draw: st.DrawFn) -> bytes:
    """The bytes of an event, some of them exchanged, cut off or added."""
    data = bytearray(sealer()(draw(new_events()), 5001).envelope)
    at = draw(st.integers(5, len(data) - 1))
    data[at : draw(st.integers(at, at + 3))] = draw(st.binary(max_size=3))
    return bytes(data[: draw(st.sampled_from([len(data), len(data) - 1, at]))])


@needs_native
@given(new_events().map(lambda event: sealer()(event, 5001).envelope) | damaged_envelopes())
def test_both_read_the_same_from_any_bytes(data: bytes) -> None:
    natively, here = (
        Codec(100001, event_schema(), MemoryRegistry(), natively=way) for way in (True, False)
    )

    assert _read(natively, data) == _read(here, data)


def _read(codec: Codec, data: bytes) -> Any:
    try:
        return codec.record(data)
    except UndecodableEvent as error:
        return str(error)


def test_without_the_module_python_seals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.events.sealer.native", lambda: None)
    alone = Sealer(producer=PRODUCER, codec=_codec(event_schema()), catalogue=catalogue())

    assert alone.native is None
    assert alone(example("loop.done"), 5001) == sealer()(example("loop.done"), 5001)


@needs_native
def test_it_knows_the_schema_that_this_program_writes() -> None:
    assert understands(native(), event_schema())


@needs_native
def test_a_schema_it_was_not_written_for_is_left_to_python() -> None:
    grown = event_schema().replace(
        '"status", "type": ["null", "string"], "default": null', '"status", "type": "string"'
    )
    assert shape(grown) != shape(event_schema())

    other = Sealer(producer=PRODUCER, codec=_codec(grown), catalogue=catalogue())

    assert other.native is None
    assert other(example("step.exit"), 5001).record["status"] == "completed"


def _codec(schema: str) -> Codec:
    return Codec(100001, schema, MemoryRegistry())
