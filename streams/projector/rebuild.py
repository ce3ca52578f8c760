"""Rebuild of the tables from the whole log."""

from __future__ import annotations

from streams.log.port import EventStore, Frontier
from streams.projector.business.fold import BusinessFolds
from streams.projector.outputs import Outputs
from streams.projector.port import ProjectionStore
from streams.projector.views import Views, by_root


async def rebuild(
    log: EventStore,
    store: ProjectionStore,
    outputs: Outputs | None = None,
    business: BusinessFolds | None = None,
) -> int:
    """Delete every row and fold the log again; return how many events were read.

    Frame outputs are read again if `outputs` or `business` is given.

    A live projector may run meanwhile: the newer version of a row wins.

    Raises:
        Unavailable: the log or the tables cannot be reached; run it again.
    """
    await store.clear()
    views, frontier, count = Views(log), Frontier(), 0
    while True:
        events, frontier = await log.read_log(frontier)
        if not events:
            return count
        folded = await views.fold(by_root(events))
        if business is not None:
            folded.changes.add(await business.rows(events, folded.states))
        elif outputs is not None:
            folded.changes.add(await outputs.rows(events))
        await store.save(folded.changes, ())
        views.remember(folded)
        count += len(events)
