"""Sealing: what is frozen, and that recorded events are still sealed to the same bytes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from streams.events.catalogue import catalogue
from streams.events.model import NewEvent
from tests.histories.envelopes import event_of, name_of, recorded
from tests.support.events.examples import AT, TYPES, example, full_payload, payload, sealed
from tests.support.events.strategies import new_events

pytestmark = pytest.mark.usefixtures("either_sealer")

RECORDED = recorded()


@pytest.mark.parametrize("name", TYPES)
def test_the_newest_version_of_every_type_has_a_recorded_envelope(name: str) -> None:
    assert name_of(name) in RECORDED, (
        "run `python -m tests.histories.envelopes`, which adds what is missing"
    )


@pytest.mark.parametrize("name", TYPES)
def test_recorded_events_are_still_sealed_to_the_same_bytes(name: str) -> None:
    known = RECORDED[name_of(name)]
    one = sealed(event_of(known["event"]))
    assert one.record["checksum"] == known["checksum"]
    assert one.digest.hex() == known["digest"]
    assert one.envelope.hex() == known["envelope"]


def test_the_same_event_is_sealed_to_the_same_bytes_twice() -> None:
    assert sealed(example("frame.committed")) == sealed(example("frame.committed"))


@given(new_events())
def test_sealing_does_not_depend_on_the_order_of_keys(event: NewEvent) -> None:
    turned = replace(
        event,
        meta=dict(reversed(list(event.meta.items()))),
        context=_turned(event.context),
        result=_turned(event.result),
    )
    assert sealed(turned).envelope == sealed(event).envelope


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return [_turned(item) for item in value] if isinstance(value, list) else value


def test_a_retelling_has_the_same_digest_and_another_checksum() -> None:
    event = example("frame.committed")
    retold = replace(
        event,
        event_time=AT + timedelta(seconds=5),
        trace="other",
        causation_id=42,
        payload_ref=_no_hint(),
    )
    one, two = sealed(event), sealed(retold, event_id=5002, producer="noetl://tenant/acme")
    assert one.digest == two.digest
    assert one.record["checksum"] != two.record["checksum"]


def _no_hint() -> Any:
    return replace(full_payload(), ipc=None)


def test_other_content_has_another_digest() -> None:
    event = example("frame.committed")
    assert sealed(event).digest != sealed(replace(event, result={"rows": 4})).digest
    assert sealed(event).digest != sealed(replace(event, payload_ref=payload())).digest


def test_the_expected_version_is_a_condition_not_content() -> None:
    event = example("frame.committed")
    one, two = sealed(event), sealed(replace(event, expected_version=3))
    assert (two.expected_version, two.digest, two.envelope) == (3, one.digest, one.envelope)


def test_a_claim_names_its_type_and_value() -> None:
    assert sealed(example("loop.done")).claim == "loop.done:7001"
    assert sealed(example("loop.fanin.completed")).claim == "loop.fanin.completed:7001"
    assert sealed(example("loop.started")).claim is None


def test_without_a_correlation_the_root_is_it() -> None:
    assert sealed(example("loop.done", correlation_id=None)).record["correlation_id"] == "1001"


def test_only_executions_have_an_execution_id() -> None:
    assert sealed(example("loop.done")).record["execution_id"] == 1001
    assert sealed(example("tenant.created")).record["execution_id"] is None


def test_the_schema_is_named_and_versioned_by_the_catalogue() -> None:
    record = sealed(example("loop.done", schema_version=1)).record
    assert record["schema_name"] == "noetl.loop.done"
    assert record["schema_version"] == catalogue().types["loop.done"].version


def test_read_only_mappings_can_be_sealed() -> None:
    meta = example("loop.done").meta
    one = sealed(example("loop.done", meta=MappingProxyType(dict(meta))))
    assert one.envelope == sealed(example("loop.done")).envelope
