"""Executions in the crash journal: which of them crashed the planner, and in which activity.

An execution can crash the planner without a record: when it is taken over from the log, or on
a timer. So crashes are counted against executions as well as records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streams.kafka.feed.crash_journal import CrashJournal, Suspect

SUBJECT = "execution"


class ExecutionSuspects:
    """Counts crashes of a planner by the executions it was handling."""

    def __init__(self, journal: CrashJournal) -> None:
        self._journal = journal

    def deaths(self, execution_id: int) -> int:
        """Return in how many crashes the execution was being handled."""
        return self._journal.deaths(SUBJECT, execution_id)

    def last(self, execution_id: int) -> str:
        """Return the activity at the last of those crashes; if possible, the event."""
        found = [one for one in self._journal.suspects if one.covers(SUBJECT, execution_id)]
        events = [one for one in found if one.activity == "event"]
        return (events or found)[-1].detail

    def groups(self, execution_ids: Iterable[int]) -> Iterator[list[int]]:
        """Yield which executions to handle together: unsuspected ones first, suspects alone."""
        ids = list(execution_ids)
        suspects = {key for key in ids if self.deaths(key)}
        if unsuspected := [key for key in ids if key not in suspects]:
            yield unsuspected
        for key in ids:
            if key in suspects:
                yield [key]

    def begin(self, activity: str, details: Mapping[int, str]) -> None:
        """Record that these executions are being handled from now on."""
        self._journal.begin(
            Suspect(SUBJECT, key, key, activity, detail) for key, detail in details.items()
        )

    def pause(self) -> None:
        """Record that none is being handled: crashes from now on are not counted."""
        self._journal.pause()

    def end(self, activity: str, execution_ids: Iterable[int]) -> None:
        """Record that handling succeeded; earlier crashes in that activity no longer count."""
        well = set(execution_ids)
        self._journal.end(lambda one: one.activity == activity and one.first in well)

    def clear(self, execution_id: int) -> None:
        """Reset the count of an execution that was suspended."""
        self._journal.end(lambda one: one.first == execution_id)
