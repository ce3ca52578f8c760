"""Which executions are suspected of ending the planner, and of how many deaths."""

from __future__ import annotations

from pathlib import Path

from streams.planner.crash_journal import Blame, FileNotes, MemoryNotes


def test_who_was_being_handled_at_a_death_is_suspect_and_handled_alone_and_last() -> None:
    notes = MemoryNotes()
    Blame(notes).begin("event", {1: "seq 5 (step.enter)", 2: "seq 9 (step.exit)"})
    blame = Blame(notes)
    assert [blame.deaths(key) for key in (1, 2, 3)] == [1, 1, 0]
    assert list(blame.groups([1, 2, 3, 4])) == [[3, 4], [1], [2]]


def test_deaths_add_up_over_lives_and_the_event_is_named_best() -> None:
    notes = MemoryNotes()
    Blame(notes).begin("event", {1: "seq 5 (step.enter)"})
    Blame(notes).begin("takeover", {1: "as it was taken over"})
    blame = Blame(notes)
    assert (blame.deaths(1), blame.last(1)) == (2, "seq 5 (step.enter)")
    blame.absolve(1)
    assert Blame(notes).deaths(1) == 0


def test_what_went_well_clears_deaths_of_its_kind_only() -> None:
    notes = MemoryNotes()
    Blame(notes).begin("time", {1: "as its time came"})
    blame = Blame(notes)
    blame.begin("takeover", {1: "x"})
    blame.end("takeover", [1])
    assert blame.deaths(1) == 1
    blame.begin("time", {1: "x"})
    blame.end("time", [1])
    assert (blame.deaths(1), Blame(notes).deaths(1)) == (0, 0)


def test_a_pause_is_no_death() -> None:
    notes = MemoryNotes()
    blame = Blame(notes)
    blame.begin("event", {1: "x"})
    blame.pause()
    assert Blame(notes).deaths(1) == 0


def test_notes_outlive_the_process_and_unreadable_ones_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "planner" / "executions.journal"
    Blame(FileNotes(path)).begin("event", dict.fromkeys(range(50), "a long one " * 20))
    blame = Blame(FileNotes(path))
    assert blame.deaths(49) == 1
    for key in range(50):
        blame.absolve(key)
    assert Blame(FileNotes(path)).deaths(49) == 0
    path.write_bytes(b"{no json")
    assert Blame(FileNotes(path)).deaths(49) == 0
