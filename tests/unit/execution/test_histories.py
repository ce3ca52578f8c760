"""Recorded executions, folded by the code of today: every state is the one that was recorded."""

from __future__ import annotations

import hashlib

import pytest

from streams.events.canonical import canonical_fields, checksum
from streams.events.catalogue import catalogue
from tests.histories.replay import NAMES, Replay, differences, recorded


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_execution_is_folded_to_the_states_it_had(name: str) -> None:
    replay = Replay()
    for one in recorded(name):
        found = differences(one.state, replay.after(one.event))
        assert not found, f"after {one.event.seq} {one.event.type}: {found}"


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_event_is_as_it_was_sealed(name: str) -> None:
    chains: dict[int, bytes] = {}
    for one in recorded(name):
        assert checksum(canonical_fields(one.envelope)) == one.event.checksum
        before = chains.get(one.event.root.id, bytes(32))
        chain = hashlib.sha256(before + bytes.fromhex(one.event.checksum)).digest()
        assert one.event.chain == chain.hex()
        chains[one.event.root.id] = chain


def test_every_type_of_event_that_executions_have_is_in_a_history() -> None:
    kinds = [(name, kind) for name, kind in catalogue().types.items() if kind.root == "execution"]
    written = {name for name, kind in kinds if not kind.planned}
    assert {one.event.type for name in NAMES for one in recorded(name)} == written


def test_a_state_that_differs_is_noticed() -> None:
    replay = Replay()
    *_, last = [(one, replay.after(one.event)) for one in recorded("commands")]
    one, today = last
    assert differences(one.state, {**today, "plan/status": "FAILED"})
    assert differences(one.state, {k: v for k, v in today.items() if k != "plan/status"})
    assert differences(one.state, {**today, "plan/later": 1})
    assert not differences(one.state, {**today, "plan/later": 0})
