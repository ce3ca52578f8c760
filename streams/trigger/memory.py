"""Ledger, catalog and topic ids in memory, for tests and the simulator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from streams.clock import Clock, SystemClock
from streams.events.model import Root
from streams.events.types import ExecutionCancelled, PlaybookCompleted, PlaybookFailed
from streams.log.port import EventStore
from streams.payload.port import Scope
from streams.trigger.port import Entered, LedgerEntry, Origin, PlaybookVersion
from streams.trigger.settle import IdempotencyKey, created, settle, wanted_keys

ENDINGS = {PlaybookCompleted.TYPE, PlaybookFailed.TYPE, ExecutionCancelled.TYPE}


class MemoryLedger:
    """Enters records beside a log in memory."""

    def __init__(self, log: EventStore, clock: Clock | None = None) -> None:
        self._log, self._clock = log, clock or SystemClock()
        self.rows: dict[Origin, Entered] = {}
        self._keys: dict[IdempotencyKey, int] = {}
        self._expiry: dict[IdempotencyKey, float] = {}

    async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
        """Enter a batch; return the results in its order."""
        known = {
            entry.origin: self.rows[entry.origin] for entry in entries if entry.origin in self.rows
        }
        now = self._clock.now().timestamp()
        held = {key: root for key, root in self._keys.items() if self._expiry[key] > now}
        wanted = wanted_keys([entry for entry in entries if entry.origin not in known])
        answers = settle(entries, known, {**wanted, **held})
        if made := created(entries, answers, known):
            await self._log.append([entry.event for entry in made])
        for key, execution_id in wanted.items():
            if key not in held:
                self._keys[key] = execution_id
                self._expiry[key] = now + key.window_s if key.window_s else math.inf
        for answer in answers:
            row = Entered(answer.origin, answer.execution_id, answer.rejected_id)
            self.rows.setdefault(answer.origin, row)
        return answers

    async def next_offset(self, reader: str, topic_id: str, partition: int) -> int | None:
        """Return the offset after the reader's last record of a partition; None without any."""
        place = (reader, topic_id, partition)
        found = [
            one.offset for one in self.rows if (one.reader, one.topic_id, one.partition) == place
        ]
        return max(found) + 1 if found else None

    async def open_executions(self, reader: str, limit: int) -> int:
        """Return how many executions of the reader have not ended, at most `limit`."""
        ids = {row.execution_id for origin, row in self.rows.items() if origin.reader == reader}
        found = 0
        for execution_id in ids - {None}:
            root = Root("execution", execution_id or 0)
            types = [event.type async for event in self._log.read_root(root)]
            found += not ENDINGS & set(types)
        return min(found, limit)


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
