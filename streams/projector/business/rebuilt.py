"""Business projections of one execution, folded from its first event whatever is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from streams.projector.business.fold import BusinessFolds
from streams.projector.business.port import BusinessStates, StateId
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.rows import Changes, Row

FoldsOf: TypeAlias = Callable[[BusinessStates], BusinessFolds]
"""Returns folds that continue the given states."""


class RebuiltStates:
    """The states of one execution while it is folded again; memory grows with its keys."""

    def __init__(self) -> None:
        self._states: dict[StateId, BusinessStateRow] = {}
        self._progress: dict[tuple[int | str, ...], BusinessProgressRow] = {}

    @property
    def changes(self) -> Changes:
        """All rows so far."""
        found = Changes()
        found.add(self._states.values())
        found.add(self._progress.values())
        return found

    async def progress(self, execution_ids: Iterable[int]) -> Sequence[BusinessProgressRow]:
        """Return how far the projections were folded."""
        return list(self._progress.values())

    async def states(self, ids: Sequence[StateId]) -> Sequence[BusinessStateRow]:
        """Return the states that exist."""
        return [self._states[one] for one in ids if one in self._states]

    def split(self, rows: Iterable[Row]) -> list[Row]:
        """Add the rows of business projections; return the others."""
        others: list[Row] = []
        for row in rows:
            if isinstance(row, BusinessStateRow):
                self._states[StateId(*row.key)] = row  # type: ignore[arg-type]
            elif isinstance(row, BusinessProgressRow):
                self._progress[row.key] = row
            else:
                others.append(row)
        return others
