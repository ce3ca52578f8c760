"""Which records are suspected of ending a process, and when one is set aside."""

from pathlib import Path

from streams.kafka.feed.crash_journal import (
    CrashJournal,
    JournalFile,
    MemoryJournalStorage,
    Suspect,
)
from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.feed.record_suspects import Batch, BatchStep, RecordSuspects

PARTITION, OTHER = TopicPartition("things", 0), TopicPartition("things", 1)


def steps(batch: Batch, deaths: list[Suspect]) -> list[BatchStep]:
    storage = MemoryJournalStorage()
    for suspect in deaths:
        CrashJournal(storage).begin([suspect])
    return list(RecordSuspects(CrashJournal(storage)).steps(batch))


class Journal(RecordSuspects):
    """What the next process finds in a file."""

    def __init__(self, path: Path) -> None:
        self.file = CrashJournal(JournalFile(path))
        super().__init__(self.file)

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        return self.file.suspects


def record(offset: int, partition: TopicPartition = PARTITION) -> Record:
    return Record(partition, offset, None, b"", (), 0)


def records(*offsets: int, partition: TopicPartition = PARTITION) -> list[Record]:
    return [record(offset, partition) for offset in offsets]


def test_without_suspects_a_batch_stays_whole():
    batch = {PARTITION: records(1, 2), OTHER: records(5, partition=OTHER)}
    assert steps(batch, []) == [BatchStep(batch)]


def test_a_suspect_stands_alone_and_the_order_is_kept():
    batch = {PARTITION: records(1, 2, 3, 4)}
    assert steps(batch, [Suspect(str(PARTITION), 3, 3)]) == [
        BatchStep({PARTITION: records(1, 2)}),
        BatchStep({PARTITION: records(3)}),
        BatchStep({PARTITION: records(4)}),
    ]


def test_a_suspect_of_another_place_changes_nothing_here():
    batch = {PARTITION: records(3)}
    assert steps(batch, [Suspect(str(OTHER), 3, 3)] * 3) == [BatchStep(batch)]


def test_the_third_death_makes_poison_of_one_record_not_of_its_neighbours():
    deaths = [
        Suspect(str(PARTITION), 1, 3),
        Suspect(str(PARTITION), 2, 2),
        Suspect(str(PARTITION), 2, 2),
    ]
    found = steps({PARTITION: records(1, 2, 3)}, deaths)
    assert [step.is_poison for step in found] == [False, True, False]


def test_what_was_being_handled_at_a_death_is_suspect_in_the_next_life(tmp_path: Path):
    path = tmp_path / "role" / "journal"
    Journal(path).begin({PARTITION: records(4, 5)})
    assert Journal(path).suspects == (Suspect(str(PARTITION), 4, 5),)


def test_deaths_add_up_until_the_record_passes(tmp_path: Path):
    path = tmp_path / "journal"
    for _ in range(2):
        Journal(path).begin({PARTITION: records(4)})
    journal = Journal(path)
    assert len(journal.suspects) == 2
    journal.begin({PARTITION: records(4)})
    journal.end({PARTITION: records(4)})
    assert Journal(path).suspects == ()


def test_a_suspect_range_stays_until_its_last_record_passes(tmp_path: Path):
    path = tmp_path / "journal"
    Journal(path).begin({PARTITION: records(4, 5)})
    journal = Journal(path)
    journal.end({PARTITION: records(4)})
    assert journal.suspects == (Suspect(str(PARTITION), 4, 5),)
    journal.end({PARTITION: records(5)})
    assert journal.suspects == ()


def test_a_clean_exit_counts_against_nobody(tmp_path: Path):
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.begin({PARTITION: records(4)})
    journal.file.close(is_clean_exit=True)
    assert Journal(path).suspects == ()


def test_a_shorter_note_over_a_longer_one_is_read_right(tmp_path: Path):
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.begin({TopicPartition("a-long-name-of-a-topic", 11): records(1_000_000)})
    journal.begin({PARTITION: records(1)})
    assert Journal(path).suspects == (Suspect(str(PARTITION), 1, 1),)


def test_an_unreadable_journal_is_begun_anew(tmp_path: Path):
    path = tmp_path / "journal"
    path.write_bytes(b"\0\0garbage")
    assert Journal(path).suspects == ()
