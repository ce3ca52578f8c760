"""The quick look never says yes to what the rules would refuse."""

from __future__ import annotations

from hypothesis import given

from streams.events.catalogue import catalogue
from streams.events.fast_check import certainly_valid
from streams.events.model import NewEvent
from streams.events.rules import _check_each_field
from tests.support.events.examples import TYPES, example
from tests.support.events.strategies import damaged_events, new_events


@given(damaged_events() | new_events())
def test_a_yes_is_a_yes_of_every_rule(event: NewEvent) -> None:
    kind = catalogue().types[event.type]

    if certainly_valid(event, kind):
        assert _check_each_field(event, catalogue()) is kind


def test_it_says_yes_to_ordinary_events_or_it_would_be_useless() -> None:
    sure = [name for name in TYPES if certainly_valid(example(name), catalogue().types[name])]

    assert "frame.committed" in sure
    assert len(sure) > len(TYPES) / 2
