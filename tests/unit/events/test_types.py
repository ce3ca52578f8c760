"""The event classes are those of the catalogue, and read back what they wrote."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace

import pytest

from streams.events.catalogue import catalogue
from streams.events.errors import UnreadableEvent
from streams.events.generate import TYPES_FILE, class_name, generate
from streams.events.model import NewEvent
from streams.events.types import ALL, AnyEvent, FrameCommitted, PlaybookInitialized, typed
from tests.support.events.examples import TYPES, example


def test_types_py_is_what_streams_events_generate_would_write() -> None:
    is_fresh = TYPES_FILE.read_text("utf-8") == generate(catalogue())

    assert is_fresh, "streams/events/types.py is stale: run `streams events generate`"


def test_every_type_of_the_catalogue_has_one_class() -> None:
    assert {one.TYPE: one.__name__ for one in ALL} == {name: class_name(name) for name in TYPES}


@pytest.mark.parametrize("name", TYPES)
def test_what_a_class_writes_it_reads_again(name: str) -> None:
    read = typed(example(name))
    assert read is not None

    assert typed(_written(read)) == read


@pytest.mark.parametrize("name", TYPES)
def test_a_class_writes_every_routing_value_it_read(name: str) -> None:
    event = example(name)
    read = typed(event)
    assert read is not None

    assert _written(read).meta == event.meta


def test_what_is_none_is_not_written() -> None:
    columns = PlaybookInitialized(path="a", version=1).columns()

    assert columns["meta"] == {"path": "a", "version": 1}
    assert columns["context"] is None


def test_ids_are_numbers_here_and_text_in_the_log() -> None:
    read = typed(example("frame.committed"))
    assert isinstance(read, FrameCommitted)

    assert read.frame_id == 7001
    assert read.columns()["meta"]["frame_id"] == "7001"


def test_an_event_that_was_read_is_as_frozen_as_one_that_was_made() -> None:
    read = typed(example("playbook.initialized"))
    assert isinstance(read, PlaybookInitialized)

    with pytest.raises(FrozenInstanceError):
        read.path = "b"  # type: ignore[misc]
    assert hash(replace(read, workload=None)) == hash(replace(read, workload=None))


def test_a_type_that_nobody_knows_has_no_class() -> None:
    assert typed(replace(example("frame.committed"), type="frame.polished")) is None


def test_an_event_without_a_required_value_names_it() -> None:
    with pytest.raises(UnreadableEvent, match=r"frame\.committed: .*frame_id"):
        typed(example("frame.committed", meta={}))


def _written(read: AnyEvent) -> NewEvent:
    whole = example(read.TYPE)
    return NewEvent(
        root=whole.root,
        tenant_id=whole.tenant_id,
        organization_id=whole.organization_id,
        idempotency_key=whole.idempotency_key,
        event_time=whole.event_time,
        **read.columns(),
    )


def test_exactly_the_types_that_are_not_planned_have_a_writer() -> None:
    package = TYPES_FILE.parents[1]
    dev = package / "dev"
    production = [one for one in package.rglob("*.py") if not one.is_relative_to(dev)]
    text = "\n".join(one.read_text("utf-8") for one in production if one != TYPES_FILE)
    # A pattern (`case Name():`) is a reader.
    lines = (line for line in text.splitlines() if "case " not in line)
    called = {name for line in lines for name in re.findall(r"\b([A-Z]\w+)\(", line)}
    written = {name for name in TYPES if class_name(name) in called}

    assert written == {name for name in TYPES if not catalogue().types[name].planned}
