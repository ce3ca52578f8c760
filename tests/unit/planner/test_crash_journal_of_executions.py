"""Which executions are suspected of ending the planner, and of how many deaths."""

from __future__ import annotations

from pathlib import Path

from streams.kafka.feed.crash_journal import (
    CrashJournal,
    JournalFile,
    JournalStorage,
    MemoryJournalStorage,
)
from streams.planner.execution_suspects import ExecutionSuspects


def suspects_in(storage: JournalStorage) -> ExecutionSuspects:
    return ExecutionSuspects(CrashJournal(storage))


def test_who_was_being_handled_at_a_death_is_suspect_and_handled_alone_and_last() -> None:
    storage = MemoryJournalStorage()
    suspects_in(storage).begin("event", {1: "seq 5 (step.enter)", 2: "seq 9 (step.exit)"})
    suspects = suspects_in(storage)
    assert [suspects.deaths(key) for key in (1, 2, 3)] == [1, 1, 0]
    assert list(suspects.groups([1, 2, 3, 4])) == [[3, 4], [1], [2]]


def test_deaths_add_up_over_lives_and_the_event_is_named_best() -> None:
    storage = MemoryJournalStorage()
    suspects_in(storage).begin("event", {1: "seq 5 (step.enter)"})
    suspects_in(storage).begin("takeover", {1: "as it was taken over"})
    suspects = suspects_in(storage)
    assert (suspects.deaths(1), suspects.last(1)) == (2, "seq 5 (step.enter)")
    suspects.clear(1)
    assert suspects_in(storage).deaths(1) == 0


def test_what_went_well_clears_deaths_of_its_kind_only() -> None:
    storage = MemoryJournalStorage()
    suspects_in(storage).begin("time", {1: "as its time came"})
    suspects = suspects_in(storage)
    suspects.begin("takeover", {1: "x"})
    suspects.end("takeover", [1])
    assert suspects.deaths(1) == 1
    suspects.begin("time", {1: "x"})
    suspects.end("time", [1])
    assert (suspects.deaths(1), suspects_in(storage).deaths(1)) == (0, 0)


def test_a_pause_is_no_death() -> None:
    storage = MemoryJournalStorage()
    suspects = suspects_in(storage)
    suspects.begin("event", {1: "x"})
    suspects.pause()
    assert suspects_in(storage).deaths(1) == 0


def test_a_journal_outlives_the_process_and_an_unreadable_one_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "planner" / "executions.journal"
    suspects_in(JournalFile(path)).begin("event", dict.fromkeys(range(50), "a long one " * 20))
    suspects = suspects_in(JournalFile(path))
    assert suspects.deaths(49) == 1
    for key in range(50):
        suspects.clear(key)
    assert suspects_in(JournalFile(path)).deaths(49) == 0
    path.write_bytes(b"{no json")
    assert suspects_in(JournalFile(path)).deaths(49) == 0
