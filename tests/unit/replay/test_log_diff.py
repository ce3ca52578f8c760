"""The first divergence of two logs of an execution, and of a log from its own content."""

from __future__ import annotations

import hashlib

import pytest

from streams.events.canonical import canonical_fields, checksum
from streams.events.model import Root
from streams.payload.port import Scope
from streams.replay.diff_json import log_diff_json
from streams.replay.divergence import first_divergence
from streams.replay.errors import NoSuchExecution
from streams.replay.log_diff import LogComparison, NamedLog
from streams.replay.memory import MemoryStoredLog
from streams.replay.port import StoredEvent
from tests.support.events.examples import codec
from tests.support.projector.executions import Story, memory_log

ID, SCOPE = 1000, Scope("acme", "care")
ROOT = Root("execution", ID)
LINKS = 100_000


class Links:
    """A chain over numbered checksums, one of them mutated; it counts its reads."""

    def __init__(self, mutated: int | None = None) -> None:
        self._links, link, self.reads = [b""], bytes(32), 0
        for seq in range(1, LINKS + 1):
            content = b"mutated" if seq == mutated else b"%d" % seq
            link = hashlib.sha256(link + hashlib.sha256(content).digest()).digest()
            self._links.append(link)

    async def at(self, seq: int) -> bytes:
        self.reads += 1
        return self._links[seq]


@pytest.mark.parametrize("mutated", [1, 2, 49_999, 50_000, 65_537, 99_999, LINKS])
async def test_one_mutated_event_in_100_000_is_found_with_17_comparisons(mutated: int) -> None:
    whole, changed = Links(), Links(mutated)
    found = await first_divergence(whole, changed, LINKS)
    assert found.seq == mutated
    assert found.comparisons <= 17
    assert whole.reads == changed.reads == found.comparisons


async def test_equal_chains_have_no_divergence_and_an_empty_one_needs_no_comparison() -> None:
    same = Links()
    assert (await first_divergence(same, same, LINKS)).seq is None
    assert await first_divergence(same, same, 0) == (None, 0)


async def whole_log() -> MemoryStoredLog:
    stored = MemoryStoredLog()
    log = memory_log(stored.mirror)
    for event in Story(ID).whole():
        await log.append([event])
    return stored


def mutated(one: StoredEvent, *, resealed: bool = False, **fields: object) -> StoredEvent:
    """Return an event with other fields; `resealed` gives it the checksum they should have."""
    record = {**codec().record(one.envelope), **fields}
    if resealed:
        record["checksum"] = checksum(canonical_fields(record))
    sealed = bytes.fromhex(record["checksum"])
    return one._replace(envelope=codec().encode(record), checksum=sealed)


def rechained(events: list[StoredEvent]) -> list[StoredEvent]:
    link, found = bytes(32), []
    for one in events:
        link = hashlib.sha256(link + one.checksum).digest()
        found.append(one._replace(chain=link))
    return found


COMPARISON = LogComparison(codec(), SCOPE)


async def test_an_untouched_log_equals_its_content() -> None:
    found = await COMPARISON.with_itself(NamedLog("log", await whole_log()), ID)
    assert found.is_equal
    assert found.what is None


@pytest.mark.parametrize("place", [1, 4, -1])
async def test_a_changed_event_of_a_log_is_found_from_its_content(place: int) -> None:
    log = await whole_log()
    events = log.stored[ROOT]
    one = events[place if place < 0 else place - 1]
    for forged, what in (
        (mutated(one, error="forged"), "it does not match its checksum"),
        (mutated(one, error="forged", resealed=True), "its chain does not follow"),
        (one._replace(envelope=b"\0\0"), "no Confluent wire format"),
        (one._replace(chain=bytes(32)), "its chain does not follow"),
    ):
        before = list(events)
        events[one.seq - 1] = forged
        found = await COMPARISON.with_itself(NamedLog("log", log), ID)
        events[:] = before
        assert found.seq == one.seq
        assert what in str(found.what)


@pytest.mark.parametrize("place", [1, 4, -1])
async def test_a_missing_event_of_a_log_is_found(place: int) -> None:
    log = await whole_log()
    gone = log.stored[ROOT].pop(place if place < 0 else place - 1)
    found = await COMPARISON.with_itself(NamedLog("log", log), ID)
    assert (found.seq, found.what) == (gone.seq, "the event is missing")


async def test_the_first_event_that_two_logs_have_differently_is_shown() -> None:
    a, b = await whole_log(), await whole_log()
    b.stored[ROOT][:] = a.stored[ROOT]
    b.stored[ROOT][3] = mutated(b.stored[ROOT][3], node_name="forged", resealed=True)
    b.stored[ROOT][:] = rechained(b.stored[ROOT])
    found = await COMPARISON.between(NamedLog("a", a), NamedLog("b", b), ID)
    assert found.seq == 4
    assert {"node_name", "checksum"} == {one.field for one in found.differences}
    json = log_diff_json(found)
    assert (json["equal"], json["position"]) == (False, 4)


async def test_two_copies_of_a_log_are_equal_and_a_shorter_one_ends_somewhere() -> None:
    a, b = await whole_log(), MemoryStoredLog()
    events = a.stored[ROOT]
    b.stored[ROOT] = list(events)
    b._events[ROOT] = list(a._events[ROOT])
    logs = NamedLog("a", a), NamedLog("b", b)
    assert (await COMPARISON.between(*logs, ID)).is_equal
    b.stored[ROOT].pop()
    b._events[ROOT].pop()
    found = await COMPARISON.between(*logs, ID)
    assert (found.seq, found.what) == (len(events), f"b ends at event {len(events) - 1}")


async def test_an_execution_that_the_other_log_lacks_is_refused() -> None:
    logs = NamedLog("a", await whole_log()), NamedLog("the other log", MemoryStoredLog())
    with pytest.raises(NoSuchExecution, match="of the other log"):
        await COMPARISON.between(*logs, ID)
