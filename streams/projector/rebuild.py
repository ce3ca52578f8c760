"""Fold the whole log into the tables again, by the code that keeps them up to date."""

from __future__ import annotations

from streams.envelope.model import Event, Root
from streams.log.port import EventStore, Frontier
from streams.projector.port import ProjectionStore
from streams.projector.rows import Changes
from streams.projector.views import ROOTS, Views


async def rebuild(log: EventStore, store: ProjectionStore) -> int:
    """Forget every row and write all of them anew; return how many events were read.

    A live projector may go on meanwhile: whichever of the two knows more of a row wins.

    Raises:
        Unavailable: the log or the tables cannot be reached; run it again.
    """
    await store.clear()
    views, frontier, count = Views(log), Frontier(), 0
    while True:
        events, frontier = await log.read_log(frontier)
        if not events:
            return count
        roots: dict[Root, list[Event]] = {}
        for event in events:
            if event.root.type in ROOTS:
                roots.setdefault(event.root, []).append(event)
        changes = Changes()
        for root, told in roots.items():
            await views.absorb(root, told, changes)
        await store.save(changes, ())
        count += len(events)
