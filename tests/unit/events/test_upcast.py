"""Upcasters: old events in today's words, one way, or an error that names the missing step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.errors import Unavailable
from streams.events.catalogue import Catalogue, catalogue, parse_catalogue
from streams.events.model import Event
from streams.events.upcast import (
    UPCASTERS,
    BadUpcaster,
    MissingUpcaster,
    NewerEvent,
    Upcasters,
    upcast,
)
from streams.events.upcaster import Body, Upcaster
from tests.support.events.examples import ASSIGNED, TYPES, codec, example, sealed

pytestmark = pytest.mark.usefixtures("either_sealer")

SCHEMA = "noetl.tea.made"


def step(from_version: int, to_version: int, schema: str = SCHEMA) -> Upcaster:
    """A step that writes down its own name, so that the order can be seen."""

    def change(body: Body) -> Body:
        said = f"{body.meta.get('said', '')}{from_version}>{to_version} "
        return Body({**body.meta, "said": said}, context=body.context, result=[body.result])

    return Upcaster(schema, from_version, to_version, change)


def tea(version: int) -> Event:
    event = codec().decode(sealed(example("loop.done", meta={"loop_id": "1"})).envelope, ASSIGNED)
    return replace(event, type="tea.made", schema_name=SCHEMA, schema_version=version, result="hot")


def catalogue_at(version: int) -> Catalogue:
    kind = {"root": "pot", "entity": "pot", "writers": ["cook"], "why": "tea", "version": version}
    roots = {"pot": {"why": "a pot", "entities": {"pot": None}}}
    return parse_catalogue({"roots": roots, "types": {"tea.made": kind}})


def test_steps_are_applied_in_the_order_of_versions_however_they_were_registered() -> None:
    steps = [step(3, 4), step(1, 2), step(2, 3)]
    for order in (steps, steps[::-1]):
        event = upcast(tea(1), catalogue_at(4), Upcasters(order))
        assert event.meta == {"loop_id": "1", "said": "1>2 2>3 3>4 "}
        assert event.result == [[["hot"]]]
        assert event.schema_version == 4


def test_an_event_in_the_middle_takes_only_the_steps_it_lacks() -> None:
    steps = Upcasters([step(1, 2), step(2, 5)])
    assert upcast(tea(2), catalogue_at(5), steps).meta["said"] == "2>5 "


def test_an_event_of_todays_version_is_left_as_it_is() -> None:
    event = tea(2)
    assert upcast(event, catalogue_at(2), Upcasters([step(1, 2)])) is event


def test_everything_but_the_body_and_its_version_stays() -> None:
    event = tea(1)
    changed = upcast(event, catalogue_at(2), Upcasters([step(1, 2)]))
    back = replace(changed, meta=event.meta, result=event.result, schema_version=1)
    assert back == event


def test_steps_of_other_schemas_do_not_count() -> None:
    with pytest.raises(MissingUpcaster):
        upcast(tea(1), catalogue_at(2), Upcasters([step(1, 2, "noetl.coffee.made")]))


@pytest.mark.parametrize(
    ("steps", "version", "missing_from"),
    [
        ([], 1, 1),
        ([step(1, 2)], 1, 2),
        ([step(2, 3)], 1, 1),
        ([step(1, 4)], 1, 1),
    ],
)
def test_a_missing_step_is_named(steps: list[Upcaster], version: int, missing_from: int) -> None:
    with pytest.raises(MissingUpcaster) as missing:
        upcast(tea(version), catalogue_at(3), Upcasters(steps))
    assert f"{SCHEMA}: no upcaster from version {missing_from} to 3" in str(missing.value)


def test_an_event_of_a_later_version_is_held_until_the_program_is_upgraded() -> None:
    with pytest.raises(
        NewerEvent, match=r"tea\.made: the event is of version 4.* up to 3"
    ) as newer:
        upcast(tea(4), catalogue_at(3), Upcasters([step(1, 2), step(2, 3)]))
    assert isinstance(newer.value, Unavailable)
    assert newer.value.dependency == "an upgrade of this program"


def test_an_event_type_that_is_gone_from_the_catalogue_is_no_event_to_fold() -> None:
    with pytest.raises(MissingUpcaster, match=SCHEMA):
        upcast(tea(1), catalogue(), Upcasters())


def test_two_ways_out_of_one_version_are_refused() -> None:
    with pytest.raises(BadUpcaster, match=r"noetl\.tea\.made 1 to 3"):
        Upcasters([step(1, 2), step(1, 3)])


@pytest.mark.parametrize("to_version", [1, 2])
def test_a_step_that_leads_nowhere_is_refused(to_version: int) -> None:
    with pytest.raises(BadUpcaster, match="later version"):
        Upcasters([step(2, to_version)])


@pytest.mark.parametrize("name", TYPES)
def test_every_version_ever_written_leads_to_todays(name: str) -> None:
    kind = catalogue().types[name]
    for version in range(1, kind.version):
        assert UPCASTERS.path(kind.schema_name, version, kind.version)
