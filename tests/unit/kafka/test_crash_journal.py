"""Which records are suspected of ending a process, and when one is set aside."""

from pathlib import Path

from streams.kafka.feed.crash_journal import Journal, Step, Suspect, steps
from streams.kafka.feed.port import Place, Record

PLACE, OTHER = Place("things", 0), Place("things", 1)


def record(offset: int, place: Place = PLACE) -> Record:
    return Record(place, offset, None, b"", (), 0)


def records(*offsets: int, place: Place = PLACE) -> list[Record]:
    return [record(offset, place) for offset in offsets]


def test_without_suspects_a_batch_stays_whole():
    batch = {PLACE: records(1, 2), OTHER: records(5, place=OTHER)}
    assert list(steps(batch, ())) == [Step(batch)]


def test_a_suspect_stands_alone_and_the_order_is_kept():
    batch = {PLACE: records(1, 2, 3, 4)}
    assert list(steps(batch, [Suspect(PLACE, 3, 3)])) == [
        Step({PLACE: records(1, 2)}),
        Step({PLACE: records(3)}),
        Step({PLACE: records(4)}),
    ]


def test_a_suspect_of_another_place_changes_nothing_here():
    batch = {PLACE: records(3)}
    assert list(steps(batch, [Suspect(OTHER, 3, 3)] * 3)) == [Step(batch)]


def test_the_third_death_makes_poison_of_one_record_not_of_its_neighbours():
    deaths = [Suspect(PLACE, 1, 3), Suspect(PLACE, 2, 2), Suspect(PLACE, 2, 2)]
    found = list(steps({PLACE: records(1, 2, 3)}, deaths))
    assert [step.is_poison for step in found] == [False, True, False]


def test_what_was_being_handled_at_a_death_is_suspect_in_the_next_life(tmp_path: Path):
    path = tmp_path / "role" / "journal"
    Journal(path).begin({PLACE: records(4, 5)})
    assert Journal(path).suspects == (Suspect(PLACE, 4, 5),)


def test_deaths_add_up_until_the_record_passes(tmp_path: Path):
    path = tmp_path / "journal"
    for _ in range(2):
        Journal(path).begin({PLACE: records(4)})
    journal = Journal(path)
    assert len(journal.suspects) == 2
    journal.begin({PLACE: records(4)})
    journal.end({PLACE: records(4)})
    assert Journal(path).suspects == ()


def test_a_suspect_range_stays_until_its_last_record_passes(tmp_path: Path):
    path = tmp_path / "journal"
    Journal(path).begin({PLACE: records(4, 5)})
    journal = Journal(path)
    journal.end({PLACE: records(4)})
    assert journal.suspects == (Suspect(PLACE, 4, 5),)
    journal.end({PLACE: records(5)})
    assert journal.suspects == ()


def test_a_blameless_end_counts_against_nobody(tmp_path: Path):
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.begin({PLACE: records(4)})
    journal.close(is_blameless=True)
    assert Journal(path).suspects == ()


def test_a_shorter_note_over_a_longer_one_is_read_right(tmp_path: Path):
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.begin({Place("a-long-name-of-a-topic", 11): records(1_000_000)})
    journal.begin({PLACE: records(1)})
    assert Journal(path).suspects == (Suspect(PLACE, 1, 1),)


def test_an_unreadable_journal_is_begun_anew(tmp_path: Path):
    path = tmp_path / "journal"
    path.write_bytes(b"\0\0garbage")
    assert Journal(path).suspects == ()
