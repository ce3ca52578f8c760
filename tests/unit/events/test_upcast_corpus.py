"""Every recorded event of an older version reaches the newest, in a fold and in replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streams.clock import SystemClock
from streams.events.catalogue import catalogue
from streams.events.model import Event, Root
from streams.events.reading import RoutingFields
from streams.events.types import FrameLeaseExpired, typed
from streams.events.upcast import UPCASTERS, NewerEvent, upcast
from streams.execution.evolve import evolve
from streams.payload.port import Scope
from streams.projector.core import View, absorb, checksums
from streams.replay.memory import MemoryStoredLog
from streams.replay.state import Replay
from streams.replay.state_json import state_json
from streams.replay.verified import VerifiedLog
from tests.histories import envelopes
from tests.histories.replay import NAMES, recorded
from tests.support.events.examples import ASSIGNED, codec

STEP = "noetl.frame.lease_expired 1 to 2"
WITH_OLD = "simulated_10"
"""A history with both reasons for which frames lost their lease in version 1."""


def corpus() -> Iterator[Event]:
    for known in envelopes.recorded().values():
        yield codec().decode(bytes.fromhex(known["envelope"]), ASSIGNED)
    for name in NAMES:
        yield from (one.event for one in recorded(name))


def is_old(event: Event) -> bool:
    return event.schema_version < catalogue().types[event.type].version


def test_every_recorded_event_of_an_older_version_reaches_the_newest() -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for event in corpus():
        newest = upcast(event, catalogue())
        assert newest.schema_version == catalogue().types[event.type].version
        assert typed(event) == typed(newest)
        seen[event.type, event.schema_version] += 1
    written = {(one.name, n) for one in catalogue().types.values() for n in range(1, one.version)}
    assert {pair for pair in seen if pair in written} == written, "record each older version"


@pytest.mark.parametrize(("text", "reason"), [(None, "expired"), ("its worker died", "restarted")])
def test_the_reason_of_a_lost_lease_is_one_of_two_since_version_2(
    text: str | None, reason: str
) -> None:
    old = next(one for one in corpus() if one.type == FrameLeaseExpired.TYPE and is_old(one))
    meta = {key: one for key, one in old.meta.items() if key != "reason"}
    event = replace(old, meta=meta if text is None else {**meta, "reason": text})

    found = typed(event)
    assert isinstance(found, FrameLeaseExpired)
    assert found.reason == reason
    fields = RoutingFields(event.type, event.meta, event.node_name, schema_version=1)
    assert typed(fields) == found, "readers of columns upcast too"


def test_an_old_program_holds_an_event_of_a_later_version_instead_of_folding_it() -> None:
    begun = next(one.event for one in recorded("lost_frames"))
    plan = evolve(None, begun)
    lost = next(one.event for one in recorded("lost_frames") if one.event.schema_version == 2)
    later = replace(lost, seq=2, schema_version=3)

    with pytest.raises(NewerEvent, match="version 3, this program reads up to 2"):
        evolve(plan, later)
    view, _ = absorb(View(), begun)
    with pytest.raises(NewerEvent):
        absorb(view, later)


async def test_replay_verifies_the_stored_version_folds_the_newest_and_lists_the_upcasters() -> (
    None
):
    log, live, old = MemoryStoredLog(), dict[Root, View](), Counter[Root]()
    for one in recorded(WITH_OLD):
        log.mirror(one.event, codec().encode(one.envelope))
        live[one.event.root], _ = absorb(live.get(one.event.root, View()), one.event)
        old[one.event.root] += is_old(one.event)
    replay = Replay(log, VerifiedLog(log, codec()), SystemClock())
    assert max(old.values()) > 1
    for root, view in live.items():
        assert view.plan is not None
        scope = Scope(view.plan.tenant_id, view.plan.organization_id)
        state = await replay.state(root.id, scope)
        assert state.checksums == checksums(view)
        digest = UPCASTERS.versions()[STEP]
        applied = [{"upcaster": STEP, "events": old[root], "digest": digest}] if old[root] else []
        assert state_json(state, "all")["upcasters"] == applied
