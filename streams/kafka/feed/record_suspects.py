"""Records in the crash journal: batches are split so that each suspect is handled alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streams.kafka.feed.crash_journal import DEATHS, CrashJournal, Suspect
from streams.kafka.feed.port import Record, TopicPartition

Batch = Mapping[TopicPartition, list[Record]]


@dataclass(frozen=True, slots=True)
class BatchStep:
    """A part of a batch to handle, or a single record to quarantine."""

    batch: Batch
    is_poison: bool = False


class RecordSuspects:
    """Counts crashes of a process against the records it was handling."""

    def __init__(self, journal: CrashJournal) -> None:
        self._journal = journal

    def steps(self, batch: Batch) -> Iterator[BatchStep]:
        """Split a batch so that each suspect is alone; order within a partition is kept."""
        if not self._journal.suspects:
            yield BatchStep(batch)
            return
        for partition, records in batch.items():
            clean: list[Record] = []
            for record in records:
                deaths = self._journal.deaths(str(partition), record.offset)
                if deaths == 0:
                    clean.append(record)
                    continue
                if clean:
                    yield BatchStep({partition: clean})
                    clean = []
                yield BatchStep({partition: [record]}, is_poison=deaths >= DEATHS)
            if clean:
                yield BatchStep({partition: clean})

    def begin(self, batch: Batch) -> None:
        """Record that these records are being handled from now on."""
        self._journal.begin(
            Suspect(str(partition), records[0].offset, records[-1].offset)
            for partition, records in batch.items()
        )

    def pause(self) -> None:
        """Record that they are held: a crash from now on is not counted."""
        self._journal.pause()

    def end(self, batch: Batch) -> None:
        """Record that they were handled; suspects up to the last of them are cleared."""
        done = {str(partition): records[-1].offset for partition, records in batch.items()}
        self._journal.end(lambda one: one.last <= done.get(one.subject, -1))
