"""The catalogue's data: complete by the specifications, and free of contradictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams.errors import Inconsistent
from streams.events.catalogue import BadCatalogue, catalogue, parse_catalogue
from streams.events.seal import stream_of
from streams.resources import folder
from streams.topology.load import load
from tests.support.events.examples import TYPES, example

# Every event type that the specifications name.
LOOPS = """
    loop.started loop.item loop.done loop.fanout.started loop.shard.enqueued
    loop.shard.done loop.shard.failed loop.fanin.completed
"""
LIFECYCLE = """
    playbook.initialized playbook.completed playbook.failed
    workflow.initialized workflow.completed workflow.failed
    execution.cancelled step.enter step.exit
    command.issued command.claimed command.started command.completed command.failed call.done
"""
STAGES_AND_FRAMES = "stage.opened stage.closed frame.dispatched frame.committed"


@pytest.mark.parametrize("name", (LOOPS + LIFECYCLE + STAGES_AND_FRAMES).split())
def test_every_type_the_specifications_name_is_there(name: str) -> None:
    assert name in catalogue().types


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("command.issued", "command_id"),
        ("loop.done", "loop_id"),
        ("loop.fanin.completed", "loop_id"),
    ],
)
def test_the_unique_indexes_of_the_specification_are_claims(name: str, claim: str) -> None:
    assert catalogue().types[name].claim == claim


@pytest.mark.parametrize("name", ["playbook.completed", "playbook.failed", "execution.cancelled"])
def test_an_execution_ends_by_its_terminal_types(name: str) -> None:
    assert catalogue().types[name].ends


def test_nothing_else_ends_an_execution() -> None:
    ending = {k.name for k in catalogue().types.values() if k.root == "execution" and k.ends}
    assert ending == {"playbook.completed", "playbook.failed", "execution.cancelled"}


def test_what_reopens_an_ended_root_may_follow_its_end() -> None:
    reopening = [kind for kind in catalogue().types.values() if kind.reopens]
    assert [kind.name for kind in reopening] == ["redrive.requested"]
    assert all(kind.after_end and not kind.ends for kind in reopening)


def test_every_root_has_events_and_every_entity_has_one() -> None:
    used = {(kind.root, kind.entity) for kind in catalogue().types.values()}
    said = {(root.name, entity) for root in catalogue().roots.values() for entity in root.entities}
    assert used == said


def test_every_root_has_a_topic_keyed_by_it() -> None:
    topics = {topic.name for topic in load(folder("topics")).topics}
    assert {root.topic for root in catalogue().roots.values()} <= topics


@pytest.mark.parametrize("name", TYPES)
def test_the_entity_of_a_type_gives_its_stream(name: str) -> None:
    kind, event = catalogue().types[name], example(name)
    where = catalogue().roots[kind.root].entities[kind.entity]
    stream, aggregate = stream_of(event, kind, catalogue())
    if where is None:
        assert (kind.entity, stream) == (kind.root, f"{kind.root}/1001")
        assert aggregate == stream
    else:
        found = event.node_name if where == "node_name" else event.meta[where]
        assert stream == f"{kind.root}/1001/{kind.entity}/{found}"
        assert aggregate == f"{kind.entity}/{found}"


@pytest.mark.parametrize("name", TYPES)
def test_routing_values_have_names_apart_from_user_data(name: str) -> None:
    kind = catalogue().types[name]
    assert not set(kind.meta) & {"context", "result", "error", "current_item", "item", "payload"}
    assert kind.why
    assert kind.writers


def _wrong(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "root": "r",
        "entity": "part",
        "writers": ["w"],
        "why": "because",
        "meta": {"part_id": "id", "n": "maybe int"},
    }
    change(entry)
    roots = {"r": {"why": "x", "entities": {"r": None, "part": "part_id", "step": "node_name"}}}
    return {"roots": roots, "types": {"a.happened": entry}}


def test_a_right_catalogue_is_read() -> None:
    kind = parse_catalogue(_wrong(lambda entry: None)).types["a.happened"]
    assert kind.required_meta == {"part_id"}
    assert kind.schema_name == "noetl.a.happened"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda e: e.update(root="other"), "unknown root 'other'"),
        (lambda e: e.update(entity="other"), "no entity 'other'"),
        (lambda e: e.update(colour="red"), "unknown keys ['colour']"),
        (lambda e: e["meta"].update(n="float"), "unknown kind 'float'"),
        (lambda e: e["meta"].pop("part_id"), "found by meta.part_id"),
        (lambda e: e["meta"].update(part_id="maybe id"), "found by meta.part_id"),
        (lambda e: e.update(entity="step"), "found by node_name"),
        (lambda e: e.update(claim="n"), "claim meta.n is not required"),
        (lambda e: e.update(payload="maybe"), "payload is 'maybe'"),
        (lambda e: e.update(user_data=["secrets"]), "user_data names ['secrets']"),
        (lambda e: e.update(columns=["colour"]), "columns names ['colour']"),
        (lambda e: e.update(columns=["error"]), "requires error"),
    ],
)
def test_a_contradiction_names_the_type_and_what_is_wrong(
    change: Callable[[dict[str, Any]], object], says: str
) -> None:
    with pytest.raises(BadCatalogue) as refused:
        parse_catalogue(_wrong(change))
    assert "a.happened" in str(refused.value)
    assert says in str(refused.value)
    assert isinstance(refused.value, Inconsistent)
