"""Events in, facts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta
from functools import lru_cache
from typing import TypeVar

import orjson
import pytest

from streams.cli.facts import fact_json
from streams.events.catalogue import catalogue
from streams.events.model import Assigned, Event, NewEvent, Root
from streams.events.upcast import upcast
from streams.facts.audit import audit_facts
from streams.facts.codec import fact_schema
from streams.facts.core import FactState, absorb
from streams.facts.model import (
    KINDS,
    TOPICS,
    AuditFact,
    BillingFact,
    ExecutionFact,
    Fact,
    FrameFact,
    StageFact,
)
from streams.projector.core import View
from streams.projector.rows import Changes, ExecutionRow, FrameRow, StageRow
from streams.resources import folder
from streams.topology import load
from tests.golden.corpus import Stored, read_logs
from tests.support.events.examples import codec
from tests.support.projector.executions import Story, memory_log, stored_events
from tests.support.projector.rows import rows_after

ID = 1000
BLANK = FactState()
T = TypeVar("T", bound=Fact)
Facts = dict[tuple[str, str], Fact]


async def events_of(*new: NewEvent) -> list[Event]:
    log = memory_log()
    for one in new:
        await log.append([one])
    return await stored_events(log, new[0].root)


def spaced(events: Sequence[Event]) -> list[Event]:
    """Return the events a second apart."""
    start = events[0].ingest_time.replace(hour=12)
    return [
        replace(one, ingest_time=start + timedelta(seconds=number))
        for number, one in enumerate(events)
    ]


def fold(events: Sequence[Event], state: FactState = BLANK) -> tuple[FactState, Facts]:
    facts: Facts = {}
    for event in events:
        state, changed = absorb(state, event)
        facts |= {(fact.NAME, fact.key): fact for fact in changed}
    return state, facts


def only(facts: Facts, kind: type[T]) -> T:
    (found,) = (fact for fact in facts.values() if isinstance(fact, kind))
    return found


@lru_cache(maxsize=1)
def golden() -> list[list[Event]]:
    def event_of(stored: Stored) -> Event:
        one = stored.event
        given = Assigned(
            one.seq, one.position, one.stream_version, one.ingest_time, one.chain.hex()
        )
        return upcast(codec().decode(one.envelope, given), catalogue())

    logs = [[event_of(one) for one in log.events] for log in read_logs() if log.is_folded]
    by_root: dict[tuple[int, Root], list[Event]] = {}
    for number, events in enumerate(logs):
        for event in events:
            by_root.setdefault((number, event.root), []).append(event)
    return list(by_root.values())


async def test_a_whole_execution_has_its_facts() -> None:
    events = spaced(await events_of(*Story(ID).whole()))
    _, facts = fold(events)

    execution = only(facts, ExecutionFact)
    assert (execution.status, execution.path, execution.duration_ms) == (
        "COMPLETED",
        "examples/load",
        18_000,
    )
    assert (execution.seq, execution.position) == (19, events[-1].position)
    stage = only(facts, StageFact)
    assert (stage.status, stage.frames, stage.rows_done, stage.total_rows) == ("CLOSED", 2, 10, 10)
    first, second = (fact for fact in facts.values() if isinstance(fact, FrameFact))
    assert (first.status, first.rows, first.attempts, first.worker) == ("COMMITTED", 5, 1, "w-1")
    assert (first.worker_ms, first.duration_ms) == (2000, 4000)
    assert (second.attempts, second.worker_ms) == (2, 2000 + 1000)


async def test_what_a_day_used_is_added_up_over_frames_and_commands() -> None:
    _, facts = fold(spaced(await events_of(*Story(ID).whole())))
    used = only(facts, BillingFact)
    assert (used.tenant_id, used.organization_id, used.execution_id) == ("acme", "care", ID)
    assert (used.requests, used.rows, used.rows_failed, used.bytes) == (11, 10, 0, 0)
    assert used.worker_ms == 2000 + 3000 + 1000


async def test_a_day_is_a_fact_of_its_own() -> None:
    events = spaced(await events_of(*Story(ID).whole()))
    late = [
        replace(one, ingest_time=one.ingest_time + timedelta(days=one.seq // 14)) for one in events
    ]
    _, facts = fold(late)
    days = [fact for fact in facts.values() if isinstance(fact, BillingFact)]
    assert [(one.rows, one.requests, one.worker_ms) for one in days] == [
        (10, 10, 5000),
        (0, 1, 1000),
    ]
    assert len({one.key for one in days}) == 2


async def test_a_cancelled_execution_ends_its_frames_and_pays_for_held_ones() -> None:
    story = Story(ID)
    begun = [story.began(), story.entered(), story.loop_started(), story.opened()]
    cancel = story.event(
        "execution.cancelled", status="CANCELLED", meta={"by": "ann"}, error="wrong day"
    )
    events = spaced(
        await events_of(*begun, story.dispatched(0), story.claimed(0), story.entered(), cancel)
    )
    _, facts = fold(events)
    frame = only(facts, FrameFact)
    assert (frame.status, frame.worker_ms) == ("CANCELLED", 2000)
    assert only(facts, BillingFact).worker_ms == 2000
    acts = [fact for fact in facts.values() if isinstance(fact, AuditFact)]
    assert [(act.action, act.actor, act.reason) for act in acts] == [
        ("playbook.initialized", None, None),
        ("execution.cancelled", "ann", "wrong day"),
    ]
    assert acts[0].subject == "examples/load"


def test_every_event_that_names_its_author_is_an_act() -> None:
    acts = {name for name, kind in catalogue().types.items() if "by" in kind.meta}
    assert {"credential.stored", "catalog.registered", "execution.cancelled"} <= acts
    events = (event for events in golden() for event in events)
    for event in events:
        found = audit_facts(event)
        assert bool(found) or event.type not in acts
        assert all(act.actor == event.meta.get("by") for act in found if "by" in event.meta)


async def test_an_event_that_is_known_changes_nothing() -> None:
    events = await events_of(*Story(ID).whole())
    state, _ = fold(events)
    for event in events:
        assert absorb(state, event) == (state, [])


def test_facts_of_the_golden_corpus_are_those_of_the_projector() -> None:
    assert len(golden()) > 20
    for events in golden():
        _, facts = fold(events)
        view, rows = View(), Changes()
        for event in events:
            view, changed = rows_after(view, event)
            rows.add(changed)
        for row in rows.of(ExecutionRow):
            assert isinstance(row, ExecutionRow)
            execution = facts["execution", str(row.execution_id)]
            assert isinstance(execution, ExecutionFact)
            assert (execution.status, execution.seq) == (row.status, row.last_seq)
        for row in rows.of(StageRow):
            assert isinstance(row, StageRow)
            stage = facts["stage", f"{row.execution_id}/{row.stage_id}"]
            assert isinstance(stage, StageFact)
            assert (stage.status, stage.rows_done) == (row.status, row.rows_done)
        for row in rows.of(FrameRow):
            assert isinstance(row, FrameRow)
            frame = facts["frame", f"{row.execution_id}/{row.frame_id}"]
            assert isinstance(frame, FrameFact)
            assert (frame.status, frame.rows, frame.seq) == (
                row.status,
                row.row_count,
                row.last_seq,
            )


def test_what_is_billed_to_the_golden_corpus_is_what_its_frames_took() -> None:
    rows = 0
    for events in golden():
        _, facts = fold(events)
        frames = [fact for fact in facts.values() if isinstance(fact, FrameFact)]
        days = [fact for fact in facts.values() if isinstance(fact, BillingFact)]
        assert sum(day.rows for day in days) == sum(frame.rows for frame in frames)
        assert sum(day.worker_ms for day in days) >= sum(frame.worker_ms for frame in frames)
        rows += sum(day.rows for day in days)
    assert rows > 100


def test_a_fact_does_not_depend_on_where_the_fold_was_interrupted() -> None:
    for events in golden():
        state, whole = fold(events)
        for cut in range(1, len(events), 7):
            before, facts = fold(events[:cut])
            after, rest = fold(events[cut:], before)
            assert (after, facts | rest) == (state, whole)


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_has_the_fields_of_its_class(kind: type[Fact]) -> None:
    schema = orjson.loads(fact_schema(kind))
    names = [field["name"] for field in schema["fields"]]
    assert names == [*(field.name for field in fields(kind)), "checksum"]
    nullable = {field["name"] for field in schema["fields"] if isinstance(field["type"], list)}
    assert nullable == {field.name for field in fields(kind) if "None" in str(field.type)}


def test_every_fact_topic_is_declared_with_its_schema() -> None:
    declared = load(folder("topics")).by_name
    assert {name: one.schema for name, one in declared.items() if name in TOPICS} == {
        topic: kind.__name__ for topic, kind in TOPICS.items()
    }
    assert all(declared[topic].cleanup == "compact" for topic in TOPICS)


async def test_ids_are_texts_in_json_and_nulls_stay() -> None:
    _, facts = fold(await events_of(*Story(ID).whole()))
    found = fact_json(only(facts, ExecutionFact))
    assert (found["execution_id"], found["parent_execution_id"], found["seq"]) == ("1000", None, 19)
    assert b'"tenant_id":"acme"' in orjson.dumps(found)
