"""One suite for every adapter of the projection store: memory, Postgres, DuckDB and RocksDB."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from streams.app import open_pool
from streams.payload.port import Scope
from streams.projector.stores.duckdb import DuckdbRecords
from streams.projector.stores.memory import MemoryRecords
from streams.projector.stores.port import (
    DamagedProjection,
    ErasedRecords,
    Pagination,
    ProjectionStoreUnavailable,
    RecordStore,
    StoredSnapshot,
    UnknownStoredProjection,
)
from streams.projector.stores.postgres import PostgresRecords
from streams.projector.stores.records import Lineage, ProjectionRecord, seal
from streams.projector.stores.rocksdb import RocksdbRecords
from streams.projector.stores.sealed import SealedProjections
from streams.settings import Settings
from tests.support.log.databases import dsn
from tests.support.waiting import until

CARE, OTHER_ORGANIZATION, OTHER_TENANT = (
    Scope("acme", "care"),
    Scope("acme", "bills"),
    Scope("umbra", "care"),
)
ADAPTERS = ["memory", pytest.param("postgres", marks=pytest.mark.stack), "duckdb", "rocksdb"]


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> str | Settings:
    """An adapter; for Postgres, a database of the module's own."""
    if request.param != "postgres":
        return str(request.param)
    settings: Settings = request.getfixturevalue("database")
    return settings


@pytest.fixture
async def records(adapter: str | Settings, tmp_path: Path) -> AsyncIterator[RecordStore]:
    if adapter == "memory":
        yield MemoryRecords()
    elif adapter == "duckdb":
        yield DuckdbRecords(tmp_path / "projections" / "store.duckdb")
    elif adapter == "rocksdb":
        yield RocksdbRecords(tmp_path / "projections" / "store")
    else:
        assert isinstance(adapter, Settings)
        async with open_pool(dsn(adapter, "owner")) as pool:
            store = PostgresRecords(pool)
            await store.write([], ErasedRecords())
            yield store


@pytest.fixture
def store(records: RecordStore) -> SealedProjections:
    return SealedProjections(records)


def patient(
    number: int,
    *,
    version: int = 1,
    scope: Scope = CARE,
    execution_id: int = 2**62,
    columns: Mapping[str, str] | None = None,
    kind: str = "patients",
) -> ProjectionRecord:
    return ProjectionRecord(
        projection_id=f"{kind}/{number:04d}/{execution_id}",
        projection_type=kind,
        version=version,
        place=f"{number:04d}",
        columns={"facility": str(number % 3), "ward": 'a"b,{ü'} if columns is None else columns,
        state=b'{"score": %d}\n\0\xff' % version,
        lineage=Lineage(
            tenant_id=scope.tenant_id,
            organization_id=scope.organization_id,
            execution_id=execution_id,
            first_position=10,
            last_position=10 + version,
            projection_version=3,
        ),
    )


async def found(
    store: SealedProjections,
    *,
    scope: Scope = CARE,
    kind: str = "patients",
    filters: Mapping[str, str] | None = None,
    page: Pagination | None = None,
) -> list[ProjectionRecord]:
    return [one async for one in store.query(scope, kind, filters or {}, page or Pagination())]


async def test_what_is_saved_is_loaded_with_its_lineage(store: SealedProjections) -> None:
    saved = [patient(1), patient(2, version=7)]
    await store.save_projection(saved)

    ids = [saved[1].projection_id, "patients/none", saved[0].projection_id]
    loaded = await store.load_projection(ids)

    assert sorted(loaded, key=lambda one: one.place) == saved
    assert await store.load_projection([]) == []


async def test_states_are_found_by_execution_and_type(store: SealedProjections) -> None:
    mine = [patient(number, execution_id=7) for number in (1, 2)]
    doctor = patient(3, execution_id=7, kind="doctors")
    other = patient(4, execution_id=70)
    await store.save_projection([*mine, doctor, other, patient(5, execution_id=8)])
    await store.save_projection([replace(mine[1], version=2)])

    assert await store.load_executions([7, 70, 9], "patients") == [
        mine[0],
        replace(mine[1], version=2),
        other,
    ]
    assert await store.load_executions([7], "doctors") == [doctor]
    assert await store.load_executions([7], "doctor") == []
    assert await store.load_executions([], "doctors") == []


async def test_an_empty_store_has_nothing_to_load(store: SealedProjections) -> None:
    assert await store.load_projection(["patients/1"]) == []
    assert await store.load_snapshot(CARE, "execution", "1") is None


async def test_a_redelivered_or_older_state_changes_nothing(store: SealedProjections) -> None:
    newest = patient(1, version=5)
    await store.save_projection([newest])
    again = replace(newest, state=b"another body at the same place in the log")

    await store.save_projection([again, patient(1, version=4), patient(2)])

    assert await found(store) == [newest, patient(2)]


async def test_a_newer_state_replaces_an_older_one_and_its_columns(
    store: SealedProjections,
) -> None:
    await store.save_projection([patient(1, columns={"facility": "a"})])
    moved = replace(patient(1, version=2, columns={"facility": "b"}), place="9999")

    # In one save the newest counts, wherever it stands.
    await store.save_projection([moved, patient(1, version=1), patient(2)])

    assert await found(store) == [patient(2), moved]
    assert await found(store, filters={"facility": "a"}) == []


async def test_pages_are_in_order_and_complete(store: SealedProjections) -> None:
    await store.save_projection([patient(number) for number in reversed(range(25))])
    seen: list[ProjectionRecord] = []
    sizes = []
    page = Pagination(limit=10)
    while rows := await found(store, page=page):
        seen += rows
        sizes.append(len(rows))
        page = Pagination(rows[-1].at, 10)

    assert seen == [patient(number) for number in range(25)]
    assert sizes == [10, 10, 5]


async def test_records_of_one_place_are_paged_by_id(store: SealedProjections) -> None:
    same = [replace(patient(1, execution_id=number), place="p") for number in range(1, 6)]
    await store.save_projection(same)

    first = await found(store, page=Pagination(limit=2))
    rest = await found(store, page=Pagination(first[-1].at, 10))

    assert [*first, *rest] == same


async def test_filters_are_exact_and_all_of_them_hold(store: SealedProjections) -> None:
    await store.save_projection([patient(number) for number in range(12)])

    one = await found(store, filters={"facility": "2", "ward": 'a"b,{ü'}, page=Pagination(limit=3))
    after = await found(store, filters={"facility": "2"}, page=Pagination(one[-1].at))

    assert [row.place for row in one] == ["0002", "0005", "0008"]
    assert [row.place for row in after] == ["0011"]
    assert await found(store, filters={"facility": "2", "ward": "other"}) == []
    assert await found(store, filters={"no_such_column": "2"}) == []


async def test_tenants_and_organizations_do_not_see_each_other(store: SealedProjections) -> None:
    scopes = (CARE, OTHER_ORGANIZATION, OTHER_TENANT)
    saved = {scope: patient(1, scope=scope, execution_id=n) for n, scope in enumerate(scopes)}
    await store.save_projection(list(saved.values()))

    assert {scope: await found(store, scope=scope) for scope in scopes} == {
        scope: [one] for scope, one in saved.items()
    }
    mine = saved[CARE].projection_id
    assert await store.load_projection([mine], scope=CARE) == [saved[CARE]]
    assert await store.load_projection([mine], scope=OTHER_TENANT) == []


async def test_the_state_of_another_scope_is_not_overwritten(store: SealedProjections) -> None:
    await store.save_projection([patient(1)])

    await store.save_projection([patient(1, version=9, scope=OTHER_TENANT)])

    assert await found(store) == [patient(1)]


async def test_an_unknown_projection_is_an_error_that_names_it(store: SealedProjections) -> None:
    await store.save_projection([patient(1)])

    with pytest.raises(UnknownStoredProjection, match=r"'doctors' does not exist in acme/care"):
        await found(store, kind="doctors")
    with pytest.raises(UnknownStoredProjection, match="umbra/care"):
        await found(store, scope=OTHER_TENANT)
    assert await found(store, page=Pagination(("zzzz", ""))) == []


async def test_what_was_changed_by_others_is_reported(
    records: RecordStore, store: SealedProjections
) -> None:
    whole = seal(patient(1))
    lies = [
        whole._replace(projection_id="state", state=b"{}"),
        whole._replace(projection_id="position", last_position=999),
        whole._replace(projection_id="execution", execution_id=1),
        whole._replace(projection_id="labels", labels=['["facility","9"]']),
    ]
    await records.write(lies, None)

    for lie in lies:
        with pytest.raises(DamagedProjection, match=f"'{lie.projection_id}' does not match"):
            await store.load_projection([lie.projection_id])
    with pytest.raises(DamagedProjection, match="streams rebuild projections"):
        await found(store)


async def test_a_rebuild_replaces_one_execution_up_to_its_place(store: SealedProjections) -> None:
    mine = [patient(number, version=number, execution_id=1) for number in (1, 2, 9)]
    other = patient(5, execution_id=11)
    await store.save_projection([*mine, other])
    rebuilt = patient(3, version=3, execution_id=1)

    await store.save_projection([rebuilt], erased=ErasedRecords(1, 3))
    assert await found(store) == [rebuilt, other, mine[2]]

    # As it deletes the stored state of the same version, it may write another one.
    corrected = replace(rebuilt, state=b"corrected")
    await store.save_projection([corrected], erased=ErasedRecords(1, 3))
    assert await found(store) == [corrected, other, mine[2]]

    await store.save_projection([], erased=ErasedRecords())
    with pytest.raises(UnknownStoredProjection):
        await found(store)


def snapshot(version: int, *, scope: Scope = CARE, aggregate_id: str = "1") -> StoredSnapshot:
    return StoredSnapshot(
        aggregate_type="execution",
        aggregate_id=aggregate_id,
        scope=scope,
        version=version,
        position=version * 10,
        projection_version=2,
        snapshot=b"state %d" % version,
    )


async def test_the_newest_snapshot_at_or_below_a_version_is_loaded(
    store: SealedProjections,
) -> None:
    saved = [snapshot(version) for version in (9, 10, 100)]
    for one in [*saved, replace(saved[2], snapshot=b"made again"), snapshot(50, aggregate_id="12")]:
        await store.save_snapshot(one)

    assert await store.load_snapshot(CARE, "execution", "1") == saved[2]
    assert await store.load_snapshot(CARE, "execution", "1", through_version=99) == saved[1]
    assert await store.load_snapshot(CARE, "execution", "1", through_version=10) == saved[1]
    assert await store.load_snapshot(CARE, "execution", "1", through_version=8) is None
    assert await store.load_snapshot(CARE, "catalog", "1") is None
    assert await store.load_snapshot(OTHER_TENANT, "execution", "1") is None


async def test_a_rebuild_of_an_execution_leaves_snapshots(store: SealedProjections) -> None:
    await store.save_snapshot(snapshot(5))
    await store.save_projection([], erased=ErasedRecords(1))
    assert await store.load_snapshot(CARE, "execution", "1") == snapshot(5)


@pytest.mark.parametrize("files", [DuckdbRecords, RocksdbRecords])
async def test_files_that_are_not_a_store_are_named(
    files: type[DuckdbRecords | RocksdbRecords], tmp_path: Path
) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear database" * 1000)

    with pytest.raises(ProjectionStoreUnavailable, match=r"letter\.txt"):
        await SealedProjections(files(path)).save_projection([patient(1)])


@pytest.mark.parametrize("files", [DuckdbRecords, RocksdbRecords])
async def test_two_stores_of_one_path_take_turns(
    files: type[DuckdbRecords | RocksdbRecords], tmp_path: Path
) -> None:
    one, other = (SealedProjections(files(tmp_path / "store")) for _ in range(2))
    await asyncio.gather(
        *(store.save_projection([patient(n)]) for n, store in enumerate([one, other] * 5)),
        *(store.load_projection(["patients/0001"]) for store in [one, other] * 5),
    )

    assert await found(other) == [patient(n) for n in range(10)]


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.contract import test_projection_stores as suite

async def write(files, path):
    store = suite.SealedProjections(files(path))
    for number in range(0, 10**6, 2):
        await store.save_projection([suite.patient(number), suite.patient(number + 1)])

asyncio.run(write(getattr(suite, sys.argv[1]), Path(sys.argv[2])))
"""


@pytest.mark.parametrize("files", [DuckdbRecords, RocksdbRecords])
async def test_a_killed_writer_leaves_whole_transactions_and_no_lock(
    files: type[DuckdbRecords | RocksdbRecords], tmp_path: Path
) -> None:
    path = tmp_path / "store"
    store = SealedProjections(files(path))
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, files.__name__, str(path), cwd=Path(__file__).parents[2]
    )
    try:
        await until(lambda: store.load_projection([patient(7).projection_id]))
    finally:
        writer.kill()
        await writer.wait()

    rows = await found(store, page=Pagination(limit=10**6))
    assert rows == [patient(number) for number in range(len(rows))]
    assert len(rows) % 2 == 0
    await store.save_projection([patient(8, version=2)])
    assert await store.load_projection([patient(8).projection_id]) == [patient(8, version=2)]
