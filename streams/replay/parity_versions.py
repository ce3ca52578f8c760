"""Parity of one version of a projection: all its executions, against a replay of the log."""

from __future__ import annotations

from collections.abc import Sequence

from streams.projector.business.core import checksum_of
from streams.projector.business.port import ReadableBusiness
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.shadow.port import ParityReport
from streams.projector.business.versions import ProjectionVersion
from streams.replay.business import BusinessReplay
from streams.replay.cutoff import Cutoff
from streams.replay.errors import MissingObject

FIRST = -(2**63)
MOST_FAILURES = 10


class ReplayedVersionParity:
    """Replays each execution up to where it is stored; one execution is in memory at a time."""

    def __init__(self, replay: BusinessReplay, stored: ReadableBusiness) -> None:
        self._replay, self._stored = replay, stored

    async def check(self, version: ProjectionVersion) -> ParityReport:
        """Compare all executions; stops after ten that differ."""
        executions = events = 0
        failures: list[str] = []
        after_id = FIRST
        while len(failures) < MOST_FAILURES:
            stored = await self._next(version, after_id)
            if stored is None:
                break
            progress, states = stored
            why = await self._difference(version, progress, states)
            if why is not None:
                failures.append(f"execution {progress.execution_id}: {why}")
            executions, events = executions + 1, events + progress.last_seq
            after_id = progress.execution_id
        return ParityReport(executions, events, tuple(failures))

    async def _next(
        self, version: ProjectionVersion, after_id: int
    ) -> tuple[BusinessProgressRow, Sequence[BusinessStateRow]] | None:
        """Return the next execution, as of one moment."""
        name, number = version.projection, version.version
        async with self._stored.snapshot() as reader:
            found = await reader.progress_page(
                version.scope, name, number, after_id=after_id, limit=1
            )
            if not found:
                return None
            return found[0], await reader.states_of(found[0].execution_id, name, number)

    async def _difference(
        self,
        version: ProjectionVersion,
        progress: BusinessProgressRow,
        states: Sequence[BusinessStateRow],
    ) -> str | None:
        cutoff = Cutoff(seq=progress.last_seq)
        try:
            replayed = await self._replay.state(progress.execution_id, version.scope, cutoff)
        except MissingObject as error:
            return str(error)
        for one in replayed.projections:
            if (one.fold.fold.name, one.fold.fold.version) == (version.projection, version.version):
                is_equal = one.checksum == checksum_of(progress, states)
                return None if is_equal else f"stored states differ as of seq {progress.last_seq}"
        return "it does not have this version"
