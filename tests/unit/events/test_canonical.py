"""Canonical bytes: one spelling, which another implementation of RFC 8785 agrees with."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from streams.events.canonical import (
    canonical,
    canonical_fields,
    checksum,
    from_millis,
    millis,
    semantic_digest,
    utc_text,
)
from streams.events.codec import event_schema
from streams.events.model import NewEvent
from tests.support.events.examples import AT, example, sealed
from tests.support.events.strategies import new_events

pytestmark = pytest.mark.usefixtures("either_sealer")

FIELDS = [field["name"] for field in orjson.loads(event_schema())["fields"]]
MAY_DIFFER = {"event_id", "event_time", "producer", "trace", "causation_id"}
"""What may differ when one event is appended twice; beside the hint inside `payload_ref`."""


@given(new_events())
def test_canonical_bytes_are_those_of_rfc_8785(event: NewEvent) -> None:
    fields = canonical_fields(sealed(event).record)
    assert canonical(fields) == rfc8785.dumps(fields)


@given(new_events(), st.randoms(use_true_random=False))
def test_the_order_of_the_fields_does_not_matter(event: NewEvent, rng: random.Random) -> None:
    record = sealed(event).record
    names = list(record)
    rng.shuffle(names)
    shuffled = canonical_fields({name: record[name] for name in names})
    assert checksum(shuffled) == record["checksum"]
    assert semantic_digest(shuffled) == semantic_digest(canonical_fields(record))


@given(new_events())
def test_a_field_that_is_absent_is_the_same_as_one_that_is_null(event: NewEvent) -> None:
    record = sealed(event).record
    thin = {name: value for name, value in record.items() if value is not None}
    assert checksum(canonical_fields(thin)) == record["checksum"]


def test_a_field_added_later_leaves_old_checksums_alone() -> None:
    record = sealed(example("frame.committed")).record
    assert checksum(canonical_fields({**record, "added_later": None})) == record["checksum"]
    assert checksum(canonical_fields({**record, "added_later": "x"})) != record["checksum"]


def test_the_record_has_exactly_the_fields_of_the_schema() -> None:
    assert set(sealed(example("frame.committed")).record) == set(FIELDS)


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "checksum"])
def test_the_checksum_covers_every_field(name: str) -> None:
    record, changed = _changed(name)
    assert checksum(canonical_fields(changed)) != record["checksum"]


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "checksum"])
def test_the_semantic_digest_ignores_how_a_fact_is_told_and_nothing_else(name: str) -> None:
    record, changed = _changed(name)
    same = semantic_digest(canonical_fields(record)) == semantic_digest(canonical_fields(changed))
    assert same == (name in MAY_DIFFER)


@pytest.mark.parametrize(
    "name",
    ["uri", "sha256", "media_type", "byte_length", "row_count", "schema_digest", "compression"],
)
def test_the_semantic_digest_covers_the_whole_payload_reference(name: str) -> None:
    assert not _same_fact_with_reference({name: _other("payload", name)})


def test_the_semantic_digest_ignores_the_ipc_hint() -> None:
    assert _same_fact_with_reference({"ipc": None})


def test_times_are_whole_milliseconds_in_utc() -> None:
    assert utc_text(millis(AT)) == "2026-05-16T12:34:56.789Z"
    assert utc_text(0) == "1970-01-01T00:00:00.000Z"
    assert utc_text(-1) == "1969-12-31T23:59:59.999Z"


@given(st.datetimes(datetime(1900, 1, 1), datetime(2500, 1, 1), timezones=st.just(UTC)))
def test_milliseconds_survive_and_what_is_finer_is_cut(at: datetime) -> None:
    cut = from_millis(millis(at))
    assert 0 <= (at - cut).microseconds < 1000
    assert cut.isoformat(timespec="milliseconds").replace("+00:00", "Z") == utc_text(millis(at))


def _changed(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a record in which every field is filled, and the same with one field changed."""
    record = sealed(example("frame.failed")).record
    filled = {k: _other(k, k) if v is None else v for k, v in record.items()}
    filled["checksum"] = checksum(canonical_fields(filled))
    value = filled[name]
    if name == "payload_ref":
        other: object = {**value, "sha256": "00" * 32}
    elif name == "meta":
        other = '{"other":1}'
    else:
        other = value + 1 if isinstance(value, int) else value + "x"
    return filled, {**filled, name: other}


def _other(place: str, name: str) -> object:
    numbers = ("_id", "_index", "_length", "_count")
    return 99 if name.endswith(numbers) else f"another {name} of {place}"


def _same_fact_with_reference(changes: dict[str, Any]) -> bool:
    record = sealed(example("frame.committed")).record
    reference = {**record["payload_ref"], **changes}
    assert reference != record["payload_ref"]
    changed = canonical_fields({**record, "payload_ref": reference})
    return semantic_digest(changed) == semantic_digest(canonical_fields(record))
