"""Ledger, catalog and topic ids in memory, for tests and the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams.log.port import EventStore
from streams.payload.port import Scope
from streams.trigger.port import Entered, LedgerEntry, Origin, PlaybookVersion
from streams.trigger.settle import Key, settle, wanted_keys


class MemoryLedger:
    """Enters records beside a log in memory."""

    def __init__(self, log: EventStore) -> None:
        self._log = log
        self.rows: dict[Origin, Entered] = {}
        self._keys: dict[Key, int] = {}

    async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
        """Enter a batch; return the results in its order."""
        known = {
            entry.origin: self.rows[entry.origin] for entry in entries if entry.origin in self.rows
        }
        wanted = wanted_keys([entry for entry in entries if entry.origin not in known])
        keys = {**wanted, **self._keys}
        answers = settle(entries, known, keys)
        made = [
            entry.event
            for entry, answer in zip(entries, answers, strict=True)
            if answer.is_new and entry.origin not in known
        ]
        if made:
            await self._log.append(made)
        self._keys = keys
        for answer in answers:
            row = Entered(answer.origin, answer.execution_id, answer.rejected_id)
            self.rows.setdefault(answer.origin, row)
        return answers


class MemoryPlaybookVersions:
    """A fixed set of playbooks, the same for every tenant."""

    def __init__(self, playbooks: Mapping[str, Sequence[PlaybookVersion]]) -> None:
        self._playbooks = playbooks

    async def find(self, scope: Scope, path: str, version: int | None) -> PlaybookVersion | None:
        """Return the playbook, the newest if `version` is None."""
        there = self._playbooks.get(path, ())
        fitting = [one for one in there if version in (None, one.version)]
        return max(fitting, key=lambda one: one.version, default=None)


class FixedTopicIds:
    """Uses every topic's name as its id."""

    async def topic_id(self, topic: str) -> str:
        """Return the topic's name."""
        return topic

    def forget(self) -> None:
        """Do nothing: there is no cache."""
