"""The quick look never says yes to what the rules would refuse."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streams.envelope.catalogue import catalogue
from streams.envelope.glance import surely_right
from streams.envelope.model import NewEvent, Root
from streams.envelope.rules import _check_closely
from tests.event_strategies import new_events
from tests.events import TYPES, example

JUNK: list[Any] = [
    None, "", "\x00", "\n", "\ud800", "x" * 201, "x" * 600, "0", "01", "９", "9" * 19, -1, 0, 2**63,
    2**53, True, 1.5, float("nan"), [], {}, {"\x00": 1}, {1: 2}, {"a": float("inf")}, ["\ud800"],
]  # fmt: skip
TIMES = [datetime(2026, 5, 16), datetime(2026, 5, 16, tzinfo=timezone(timedelta(hours=2)))]
NAMES = sorted(f.name for f in fields(NewEvent) if f.name not in ("root", "type", "payload_ref"))


@st.composite
def damaged_events(draw: st.DrawFn) -> NewEvent:
    """An event that kept every rule until one of its values was exchanged."""
    event = draw(new_events())
    where = draw(st.sampled_from([*NAMES, "meta value", "meta key", "root"]))
    junk = draw(st.sampled_from(JUNK))
    if where == "event_time":
        return replace(event, event_time=draw(st.sampled_from(TIMES)))
    if where == "root":
        return replace(event, root=Root(draw(st.sampled_from(["tenant", "moon"])), 1))
    if where == "meta key":
        return replace(event, meta={**event.meta, "surprise": 1})
    if where in ("meta value", "meta"):
        if not event.meta:
            return event
        name = draw(st.sampled_from(sorted(event.meta)))
        return replace(event, meta={**event.meta, name: junk})
    return replace(event, **{where: junk})


@given(damaged_events() | new_events())
def test_a_yes_is_a_yes_of_every_rule(event: NewEvent) -> None:
    kind = catalogue().types[event.type]

    if surely_right(event, kind):
        assert _check_closely(event, catalogue()) is kind


def test_it_says_yes_to_ordinary_events_or_it_would_be_useless() -> None:
    sure = [name for name in TYPES if surely_right(example(name), catalogue().types[name])]

    assert "frame.committed" in sure
    assert len(sure) > len(TYPES) / 2
