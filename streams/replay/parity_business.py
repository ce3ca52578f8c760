"""Parity of business projections: what projectors stored, against a fold of the log."""

from __future__ import annotations

from collections.abc import Sequence

from streams.payload.port import Scope
from streams.projector.business.core import checksum_of
from streams.projector.business.port import BusinessStates, StateId
from streams.replay.business import BusinessReplay, ReplayedProjection
from streams.replay.checks import Check, failed, passed
from streams.replay.errors import MissingObject


class ReplayedBusinessParity:
    """Compares progress and states of each projection that an execution declares."""

    def __init__(self, replay: BusinessReplay, stored: BusinessStates) -> None:
        self._replay, self._stored = replay, stored

    async def compare(self, execution_id: int, scope: Scope) -> Sequence[Check]:
        """Return a check for each projection of the execution."""
        try:
            state = await self._replay.state(execution_id, scope)
        except MissingObject as error:
            return [failed("business projections", "a payload is missing", str(error))]
        return [await self._check(execution_id, one) for one in state.projections]

    async def _check(self, execution_id: int, replayed: ReplayedProjection) -> Check:
        fold = replayed.fold.fold
        name = f"{fold.name} v{fold.version}"
        stored = await self._stored.progress([execution_id])
        found = [(one.projection, one.version) for one in stored]
        if (fold.name, fold.version) not in found:
            return failed(name, "nothing is stored of it")
        progress = stored[found.index((fold.name, fold.version))]
        ids = [StateId(*row.key) for row in replayed.fold.states.values()]  # type: ignore[arg-type]
        if checksum_of(progress, await self._stored.states(ids)) != replayed.checksum:
            return failed(name, "its stored states differ from the replay", name)
        return passed(name, f"{len(ids)} keys")
