"""Envelopes and references: exact JSON, and what is read of it."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from streams.events.model import PayloadRef
from streams.payload.content import describe, reference_json
from streams.payload.port import JSON, Scope
from streams.results.envelope import Envelope
from streams.results.limits import NAMES_BYTES
from streams.results.reference import ResultRef
from streams.results.resolve import NeededPayload, resolve, resolve_groups, run
from streams.results.spill import Spill, encode_result, group_of, merged, oversized, spill

ACME = Scope("acme", "care")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ("status", "data", "ref", "extracted", "error", "meta", "counts", "ctx", "unknown")
)
FIELDS = st.dictionaries(NAMES, VALUES, max_size=6)


def payload(value: Any) -> PayloadRef:
    return describe(ACME, orjson.dumps(value), media_type=JSON)


@given(FIELDS)
def test_an_envelope_is_its_json_byte_for_byte(fields: dict[str, Any]) -> None:
    data = orjson.dumps(fields)
    envelope = Envelope.parse(orjson.loads(data))
    assert orjson.dumps(envelope.to_json()) == data
    kept = TypeAdapter(Envelope)
    assert orjson.dumps(kept.validate_json(kept.dump_json(envelope)).to_json()) == data
    assert envelope.has_data == ("data" in fields)


@given(FIELDS)
def test_a_reference_is_its_json_byte_for_byte(fields: dict[str, Any]) -> None:
    reference = ResultRef.parse(fields)
    assert reference is not None
    assert orjson.dumps(reference.to_json()) == orjson.dumps(fields)


def test_what_is_no_object_has_no_fields() -> None:
    assert Envelope.parse([1]).to_json() == Envelope.parse(None).to_json() == {}
    assert ResultRef.parse("noetl://execution/1/a/b/2") is None


def test_a_reference_gives_the_payload_it_was_made_of() -> None:
    page = payload([1, 2])
    reference = ResultRef.to_payload("noetl://x", page, store="kv", scope="permanent")
    assert reference.payload(ACME) == page
    assert reference.is_permanent
    assert list(reference.to_json()) == [
        "kind",
        "ref",
        "store",
        "scope",
        "expires_at",
        "meta",
        "extracted",
        "preview",
    ]


def test_data_is_here_or_in_the_payload_of_the_event_or_of_the_reference() -> None:
    one, two = payload(1), payload(2)
    ref = ResultRef.to_payload("noetl://x", one, store="kv", scope="permanent").to_json()
    assert Envelope({"data": None, "ref": ref}).data_payload(ACME) is None
    assert Envelope({"ref": ref}).data_payload(ACME) == one
    assert Envelope({"ref": ref, "_ref": reference_json(two)}).data_payload(ACME) == two
    assert Envelope({"status": "success"}).data_payload(ACME) is None


def test_data_that_templates_read_is_put_back() -> None:
    own, task, spilled = {"a": 1}, [2], {"more": {"status": "success", "data": 3, "meta": {}}}
    stored = {id(own): payload(own), id(task): payload(task), id(spilled): payload(spilled)}
    found = {stored[id(one)].sha256: one for one in (own, task, spilled)}
    asked: list[NeededPayload] = []

    def read(need: NeededPayload) -> Any:
        asked.append(need)
        return found[need.ref.sha256]

    envelope = Envelope(
        {
            "status": "success",
            "meta": {},
            "_ref": reference_json(stored[id(own)]),
            "tasks": {"page": {"status": "success", "_ref": reference_json(stored[id(task)])}},
            "tasks_elsewhere": [group_of(spilled, stored[id(spilled)])],
        }
    )
    nothing = run(resolve(envelope, [("status",)], ACME), read)
    assert asked == []
    assert "data" not in nothing.fields
    whole = run(resolve(envelope, [()], ACME), read)
    assert whole.data == own
    assert {label: one and one.data for label, one in whole.tasks.items()} == {
        "page": task,
        "more": 3,
    }
    assert {need.names for need in asked} == {("more",), ()}


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=4), VALUES, max_size=6))
def test_what_is_spilled_comes_back(values: dict[str, Any]) -> None:
    parts = spill(values, 20, encode_result)
    assert list(parts.spilled) == oversized({k: encode_result(v) for k, v in values.items()}, 20)
    fields = parts.fields("ctx", payload(parts.spilled))
    inline, groups = merged({}, (), fields["ctx"], fields["ctx_elsewhere"])
    back = run(resolve_groups(groups, None, ACME), lambda need: parts.spilled)
    assert {**inline, **back} == values


def test_names_have_a_limit_too() -> None:
    assert Spill({}, {"n" * (NAMES_BYTES + 1): 1}).has_too_many_names
    assert not Spill({}, {"n": 1}).has_too_many_names
