"""Each business projection in the store that the settings name; all other rows in Postgres.

The other stores are written before Postgres, whose transaction has the checkpoint. After a crash
in between, the batch is delivered again, and what a store has already changes nothing. A store
that is behind, because its files were restored or deleted, continues from its own progress.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType

from streams.events.model import Json, Root
from streams.payload.port import Scope
from streams.projector.business.port import (
    BusinessReader,
    BusinessStates,
    ListedProjection,
    ReadableBusiness,
    StateId,
    StatesPage,
)
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.port import Checkpoint, ProjectionStore
from streams.projector.rows import Changes
from streams.projector.stores.business import BusinessRow, StoredBusiness

Routes = Mapping[str, StoredBusiness]
"""Stores by the names of their projections; the others are in Postgres."""
NO_ROUTES: Routes = MappingProxyType({})


class RoutedProjections:
    """Writes rows to their stores, Postgres last."""

    def __init__(self, main: ProjectionStore, routes: Routes) -> None:
        self._main, self._routes = main, routes

    async def save(self, changes: Changes, checkpoints: Sequence[Checkpoint]) -> None:
        """Write rows and checkpoints; newer rows are not overwritten."""
        others, by_store = _split(changes, self._routes)
        for store, rows in by_store.items():
            await store.save(rows)
        await self._main.save(others, checkpoints)

    async def replace(self, root: Root, through_seq: int, changes: Changes) -> None:
        """Delete a root's rows as of a place or before, and write others."""
        await self._main.replace(root, through_seq, changes)

    async def replace_business(self, execution_id: int, through_seq: int, changes: Changes) -> None:
        """Delete an execution's business projections as of a place or before, and write others."""
        others, by_store = _split(changes, self._routes)
        for store in set(self._routes.values()):
            await store.replace(execution_id, through_seq, by_store.get(store, ()))
        await self._main.replace_business(execution_id, through_seq, others)

    async def clear(self) -> None:
        """Delete every row and checkpoint."""
        for store in set(self._routes.values()):
            await store.clear()
        await self._main.clear()


class RoutedStates:
    """Reads stored states, for the projector that continues them."""

    def __init__(self, main: BusinessStates, routes: Routes) -> None:
        self._main, self._routes = main, routes

    async def progress(self, execution_ids: Iterable[int]) -> Sequence[BusinessProgressRow]:
        """Return how far the projections of executions were folded."""
        ids = list(execution_ids)
        found = [
            one for one in await self._main.progress(ids) if one.projection not in self._routes
        ]
        for store in set(self._routes.values()):
            rows = await store.progress(ids)
            found += (one for one in rows if self._routes.get(one.projection) is store)
        return found

    async def states(self, ids: Sequence[StateId]) -> Sequence[BusinessStateRow]:
        """Return the states that exist."""
        by_store: dict[BusinessStates, list[StateId]] = {}
        for one in ids:
            by_store.setdefault(self._routes.get(one.projection, self._main), []).append(one)
        return [row for store, wanted in by_store.items() for row in await store.states(wanted)]


class RoutedReader:
    """Reads each projection from its store.

    Versions of projections are switched in Postgres; those of other stores are not compared.
    """

    def __init__(self, main: BusinessReader, routes: Routes) -> None:
        self._main, self._routes = main, routes
        self.versions = main.versions
        self.places, self.progress_page = main.places, main.progress_page
        self.states_of = main.states_of

    async def projections(self, scope: Scope) -> Sequence[ListedProjection]:
        """Return the projections, by name and version."""
        found = [one for one in await self._main.projections(scope) if one.name not in self._routes]
        for store in set(self._routes.values()):
            listed = await store.projections(scope)
            found += (one for one in listed if self._routes.get(one.name) is store)
        return sorted(found, key=lambda one: (one.name, one.version, one.digest))

    async def page(
        self,
        scope: Scope,
        projection: str,
        versions: Sequence[int],
        *,
        wanted: Mapping[int, str],
        after: Sequence[Json] | None,
        limit: int,
    ) -> StatesPage:
        """Return the states of up to `limit` keys."""
        store = self._routes.get(projection, self._main)
        return await store.page(
            scope, projection, versions, wanted=wanted, after=after, limit=limit
        )


class ReadableRoutes(RoutedReader):
    """Reads also as of one moment: of Postgres; other stores are read as they are."""

    def __init__(self, main: ReadableBusiness, routes: Routes) -> None:
        super().__init__(main, routes)
        self._snapshot = main.snapshot

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[BusinessReader]:
        """Return a reader that sees Postgres as it is when it first reads."""
        async with self._snapshot() as main:
            yield RoutedReader(main, self._routes)


def _split(
    changes: Changes, routes: Routes
) -> tuple[Changes, dict[StoredBusiness, list[BusinessRow]]]:
    """Return the rows of Postgres, and those of other stores."""
    by_store: dict[StoredBusiness, list[BusinessRow]] = {}
    others = Changes()
    for row in changes:
        if isinstance(row, BusinessStateRow | BusinessProgressRow) and row.projection in routes:
            by_store.setdefault(routes[row.projection], []).append(row)
        else:
            others.add([row])
    return others, by_store
