"""Projections in other stores: the same rows, whatever crashed, was lost or was damaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streams.errors import Unavailable
from streams.events.model import Event, Json
from streams.payload.port import Scope
from streams.projector.business.core import checksum_of
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.port import StateId
from streams.projector.business.reading import BusinessQueries
from streams.projector.heads import ScannedRootHeads
from streams.projector.memory import MemoryProjections
from streams.projector.port import Checkpoint
from streams.projector.rebuild import rebuild
from streams.projector.rows import Changes
from streams.projector.stores.business import StoredBusiness
from streams.projector.stores.duckdb import DuckdbRecords
from streams.projector.stores.memory import MemoryRecords
from streams.projector.stores.port import ProjectionStoreUnavailable, RecordStore
from streams.projector.stores.rocksdb import RocksdbRecords
from streams.projector.stores.routed import ReadableRoutes, RoutedProjections, RoutedStates
from streams.projector.stores.sealed import SealedProjections
from streams.projector.views import Views, by_root
from tests.support.projector.business import (
    CARE,
    BusinessBench,
    checksums_in,
    progress_in,
    states_in,
)

ADAPTERS: dict[str, Callable[[Path], RecordStore]] = {
    "memory": lambda _: MemoryRecords(),
    "duckdb": lambda folder: DuckdbRecords(folder / "store.duckdb"),
    "rocksdb": lambda folder: RocksdbRecords(folder / "store"),
}


def row(facility: object, patient: int, score: object) -> dict[str, Any]:
    return {"facility": facility, "patient": patient, "score": score, "kind": "mds"}


class Routed:
    """A bench whose projection `patients` is in another store, and `frames` in the usual one."""

    def __init__(self, records: RecordStore) -> None:
        self.bench = BusinessBench()
        self.usual = _Crashing()
        routes = {"patients": StoredBusiness("keyed", SealedProjections(records))}
        self.store = RoutedProjections(self.usual, routes)
        self.states = RoutedStates(MemoryBusiness(self.usual), routes)
        self.queries = BusinessQueries(ReadableRoutes(MemoryBusiness(self.usual), routes))

    async def project(self, *batches: Sequence[Event]) -> None:
        """Project batches, as a projector that has just started."""
        views, folds = Views(self.bench.log), self.bench.folds_of(self.states)
        for batch in batches:
            folded = await views.fold(by_root(batch))
            folded.changes.add(await folds.rows(batch, folded.states))
            await self.store.save(folded.changes, ())
            views.remember(folded)

    async def checksums(self, *execution_ids: int) -> dict[tuple[int | str, ...], str]:
        """Return the checksums of all projections, as `checksums_in` does."""
        found = {}
        for one in await self.states.progress(execution_ids):
            digests = {state.key_digest for state in await self._all(one.projection, one.version)}
            states = await self.states.states([StateId(*one.key, d) for d in digests])  # type: ignore[call-arg]
            found[one.key] = checksum_of(one, states)
        return found

    async def _all(self, projection: str, version: int) -> Sequence[Any]:
        reader = self.queries._reader
        page = await reader.page(CARE, projection, [version], wanted={}, after=None, limit=1000)
        return page.states


class _Crashing(MemoryProjections):
    """The last write of a batch, which can fail."""

    fails = False

    async def save(self, changes: Changes, checkpoints: Sequence[Checkpoint]) -> None:
        """Write, or fail."""
        if self.fails:
            raise ProjectionStoreUnavailable("Postgres went away")
        await super().save(changes, checkpoints)


@pytest.fixture(params=["memory", "rocksdb"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> RecordStore:
    return ADAPTERS[request.param](tmp_path)


async def history(bench: BusinessBench) -> list[Event]:
    """Two executions with keys of all kinds; the projections overlap in their keys."""
    keys: list[object] = ["b", "a", None, True, -3, 20, "é", "a.", "0", False, 1.5]
    events = await bench.run(1000, [row(one, n, n) for n, one in enumerate(keys)], [row("a", 7, 1)])
    return events + await bench.run(2000, [row(one, 99, 0.1) for one in keys[:4]])


async def expected(bench: BusinessBench, events: Sequence[Event]) -> MemoryProjections:
    """Return the rows of the usual store."""
    usual = MemoryProjections()
    await bench.project([events], usual)
    return usual


async def pages(
    queries: BusinessQueries, limit: int, **query: Any
) -> list[tuple[list[Json], object]]:
    after: list[Json] | None = None
    found: list[tuple[list[Json], object]] = []
    while True:
        page = await queries.page(CARE, "patients", after=after, limit=limit, **query)
        found += [(list(one.key.values()), one.values) for one in page.rows]
        if (after := page.next) is None:
            return found


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_rows_are_those_of_the_usual_store_in_the_same_order(
    adapter: str, tmp_path: Path
) -> None:
    here = Routed(ADAPTERS[adapter](tmp_path))
    events = await history(here.bench)
    await here.project(events[:9], events[9:])
    usual = await expected(here.bench, events)

    assert await here.checksums(1000, 2000) == checksums_in(usual)
    assert {one.projection for one in progress_in(here.usual)} == {"frames"}
    whole = BusinessQueries(MemoryBusiness(usual))
    for limit in (2, 1000):
        assert await pages(here.queries, limit) == await pages(whole, 1000)
    for text in ("a", "-3", "true", "1.5"):
        mine = await pages(here.queries, 2, filters={"facility": text})
        assert mine == await pages(whole, 2, filters={"facility": text})
        assert len(mine) == 1


async def test_pages_of_several_versions_have_whole_keys(records: RecordStore) -> None:
    stored = StoredBusiness("keyed", SealedProjections(records))
    usual = MemoryProjections()
    bench = BusinessBench()
    await bench.project([await history(bench)], usual)
    first = [one for one in states_in(usual) if one.projection == "patients"]
    second = [replace(one, version=2) for one in first if one.key_values != ["a"]]
    both = Changes()
    both.add([*first, *second])
    await usual.save(both, ())
    await stored.save([*first, *second])

    for reader in (stored, whole := MemoryBusiness(usual)):
        after, keys, states = None, [], []
        while True:
            page = await reader.page(CARE, "patients", [1, 2], wanted={}, after=after, limit=2)
            keys += dict.fromkeys(one.key_digest for one in page.states)
            states += page.states
            if (after := page.next) is None:
                break
        assert len(keys) == len(set(keys)) == 11
        assert len(states) == len(first) + len(second)
    mine, theirs = [
        await one.page(CARE, "patients", [1, 2], wanted={}, after=None, limit=5)
        for one in (stored, whole)
    ]
    assert mine == theirs


async def test_projections_are_listed_with_their_store(records: RecordStore) -> None:
    here = Routed(records)
    await here.project(await history(here.bench))

    listed = await here.queries.projections(CARE)

    assert [(one.name, one.store, one.executions) for one in listed] == [
        ("frames", "postgres", 2),
        ("patients", "keyed", 2),
    ]
    assert await here.queries.projections(Scope("acme", "other")) == []


async def test_a_crash_between_the_stores_changes_nothing(records: RecordStore) -> None:
    here = Routed(records)
    events = await history(here.bench)
    await here.project(events[:9])
    here.usual.fails = True
    with pytest.raises(Unavailable):
        await here.project(events[9:])
    here.usual.fails = False

    # Delivered again from the last acknowledged batch, in other batches, and then once more.
    await here.project(events[5:15], events[15:], events[9:])

    assert await here.checksums(1000, 2000) == checksums_in(await expected(here.bench, events))


async def test_a_store_that_is_behind_continues_from_its_own_place(tmp_path: Path) -> None:
    here = Routed(records := MemoryRecords())
    events = await history(here.bench)
    await here.project(events[:9])
    restored = dict(records.records)
    await here.project(events[9:-1])
    records.records = restored  # its files are those of a backup; Postgres is ahead

    await here.project([events[-1]])
    await here.project([one for one in events if one.root.id == 1000][-1:])

    assert await here.checksums(1000, 2000) == checksums_in(await expected(here.bench, events))


async def test_damaged_progress_is_folded_again(caplog: pytest.LogCaptureFixture) -> None:
    here = Routed(records := MemoryRecords())
    events = await history(here.bench)
    await here.project(events[:-1])
    (key,) = [one for one in records.records if one.startswith("progress/2000/")]
    records.records[key] = records.records[key]._replace(last_position=7)

    await here.project(events[-1:])

    assert "progress/2000/patients.v1' does not match its checksum" in caplog.text
    assert await here.checksums(1000, 2000) == checksums_in(await expected(here.bench, events))


async def test_a_rebuild_replaces_damaged_states(records: RecordStore) -> None:
    here = Routed(records)
    events = await history(here.bench)
    await here.project(events)
    before = await here.checksums(1000, 2000)
    (state, *_) = await records.of_executions([1000], "patients.v1")
    # As if another tool had written it: it has no older version to be compared with.
    await records.write([state._replace(version=state.version + 1, state=b"{}")], None)
    with pytest.raises(Exception, match="streams rebuild projections"):
        await here.queries.page(CARE, "patients")

    await rebuild(
        ScannedRootHeads(here.bench.log),
        here.bench.log,
        here.store,
        business=here.bench.folds_of,
    )

    assert await here.checksums(1000, 2000) == before


async def test_everything_is_deleted_together(records: RecordStore) -> None:
    here = Routed(records)
    await here.project(await history(here.bench))

    await here.store.clear()

    assert await here.queries.projections(CARE) == []
