"""Replay of an organization: all of its executions as of one moment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

import orjson
from blake3 import blake3

from streams.events.model import Root
from streams.payload.port import Scope
from streams.replay.cutoff import Cutoff
from streams.replay.errors import BadCutoff
from streams.replay.port import StoredLog
from streams.replay.state import Replay

AT_ONCE = 4
PAGE = 200


class LogEnd(NamedTuple):
    """A cut across the log that no running transaction can change any more."""

    position: int
    time: datetime


class OrganizationLog(Protocol):
    """Reads which executions an organization has. Every method raises Unavailable."""

    async def settled(self) -> LogEnd:
        """Return the end of the log, once all transactions that were running have ended."""
        ...

    async def executions(self, scope: Scope, *, after_id: int, limit: int) -> Sequence[int]:
        """Return ids of executions above `after_id`, in order."""
        ...


class PastExecution(NamedTuple):
    """An execution as of the moment: its last event then, and the checksum of its state."""

    execution_id: int
    path: str | None
    status: str
    seq: int
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationPage:
    """Executions of an organization as of a cut; `next_id` is given back for the next page."""

    scope: Scope
    cutoff: Cutoff
    executions: Sequence[PastExecution]
    next_id: int | None


class OrganizationDigest:
    """Counts and checksum over the executions of any number of pages, in order."""

    def __init__(self) -> None:
        self._by_status: Counter[str] = Counter()
        self._digest = blake3()

    def add(self, executions: Sequence[PastExecution]) -> None:
        """Add the next executions."""
        for one in executions:
            self._by_status[one.status] += 1
            self._digest.update(orjson.dumps([str(one.execution_id), one.seq, one.checksum]))

    @property
    def by_status(self) -> Mapping[str, int]:
        """How many executions have each status."""
        return dict(sorted(self._by_status.items()))

    @property
    def checksum(self) -> str:
        """The checksum over ids, places and state checksums."""
        return str(self._digest.hexdigest())


class OrganizationReplay:
    """Folds the executions of an organization again, each up to the same cut."""

    def __init__(self, organizations: OrganizationLog, log: StoredLog, replay: Replay) -> None:
        self._organizations, self._log, self._replay = organizations, log, replay

    async def cut(self, cutoff: Cutoff | None) -> Cutoff:
        """Return the cut by log position or time; by default the end of the log.

        Raises:
            BadCutoff: it is later than the end of the log, or is one of a single execution.
            Unavailable: the log cannot be read, or a transaction has been running for too long.
        """
        cutoff = cutoff or Cutoff()
        if cutoff.event_id is not None or cutoff.offset is not None:
            raise BadCutoff(
                "an event or an offset is a moment of one execution; for an organization give a "
                "position of the log (`log_position` of a state) or a time"
            )
        end = await self._organizations.settled()
        if cutoff.time is None and cutoff.seq is None:
            return Cutoff(seq=end.position)
        if cutoff.time is not None and cutoff.time > end.time:
            raise BadCutoff(f"{cutoff.time.isoformat()} is in the future; its state is not known")
        if cutoff.seq is not None and cutoff.seq > end.position:
            raise BadCutoff(f"position {cutoff.seq} is not reached; the log ends at {end.position}")
        return cutoff

    async def page(
        self, scope: Scope, cut: Cutoff, *, after_id: int = 0, limit: int = PAGE
    ) -> OrganizationPage:
        """Return the next executions that had begun by the cut.

        Raises:
            TamperedLog: an event is not what was appended.
            Unavailable: the log cannot be read; retrying is safe.
        """
        ids = await self._organizations.executions(scope, after_id=after_id, limit=limit)
        places = asyncio.Semaphore(AT_ONCE)

        async def one(execution_id: int) -> PastExecution | None:
            async with places:
                return await self._past(scope, execution_id, cut)

        found = await asyncio.gather(*map(one, ids))
        return OrganizationPage(
            scope=scope,
            cutoff=cut,
            executions=[execution for execution in found if execution is not None],
            next_id=ids[-1] if len(ids) == limit else None,
        )

    async def pages(
        self, scope: Scope, cut: Cutoff, on_progress: Callable[[int], None] | None = None
    ) -> AsyncIterator[OrganizationPage]:
        """Yield all pages; `on_progress` gets the number of executions so far."""
        after: int | None = 0
        done = 0
        while after is not None:
            page = await self.page(scope, cut, after_id=after)
            yield page
            after, done = page.next_id, done + len(page.executions)
            if on_progress is not None:
                on_progress(done)

    async def _past(self, scope: Scope, execution_id: int, cut: Cutoff) -> PastExecution | None:
        root = Root("execution", execution_id)
        if cut.time is not None:
            seq = await self._log.seq_at_time(root, cut.time)
        else:
            assert cut.seq is not None
            seq = await self._log.seq_at_position(root, cut.seq)
        if seq == 0:
            return None
        state = await self._replay.state(execution_id, scope, Cutoff(seq=seq))
        row = state.execution
        return PastExecution(execution_id, row.path, row.status, seq, state.checksum_of("all"))
