"""One suite for every store of versions of projections: switched at once, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from streams.app import open_pool
from streams.payload.port import Scope
from streams.playbook.declarations import declaration_digest
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.port import ListedProjection, Places, ReadableBusiness
from streams.projector.business.postgres import PostgresBusiness
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.shadow.core import Versions
from streams.projector.business.shadow.memory import MemoryVersions
from streams.projector.business.shadow.port import NotCaughtUp, VersionsChanged, VersionStore
from streams.projector.business.shadow.postgres import PostgresVersions
from streams.projector.memory import MemoryProjections
from streams.projector.port import ProjectionStore
from streams.projector.postgres import PostgresProjections
from streams.projector.rows import Changes
from streams.settings import Settings
from tests.support.log.databases import dsn
from tests.support.projector.business import CARE

AT = datetime(2026, 5, 16, 12, 0, 0, 250, tzinfo=UTC)
NAME = "visits"


def declaration(version: int) -> dict[str, object]:
    return {
        "name": NAME,
        "version": version,
        "source": {"step": "load"},
        "key": ["facility"],
        "aggregates": {"rows": {"count": "*"}},
    }


@dataclass
class Bench:
    """A store of versions, and the rows that they have."""

    versions: VersionStore
    rows: ProjectionStore
    reader: ReadableBusiness

    async def of(self, scope: Scope = CARE) -> Versions:
        """Return the versions as stored."""
        return Versions(scope, NAME, await self.versions.versions([scope]))

    async def fold(self, version: int, execution_id: int, seq: int, *facilities: int) -> None:
        """Save the rows of an execution, as if folded up to a place."""
        changes = Changes()
        changes.add([progress(version, execution_id, seq)])
        changes.add([state(version, execution_id, seq, one) for one in facilities])
        await self.rows.save(changes, ())

    async def build(self, version: int = 2) -> None:
        """Register a version, and declare it complete."""
        listed = ListedProjection(NAME, 1, declaration(1), digest(1), 1, 0, 1)  # type: ignore[arg-type]
        versions = await self.of()
        await self.versions.change(versions.build(declaration(version), version, [listed], AT))  # type: ignore[arg-type]
        await self.versions.change((await self.of()).built(AT))


def digest(version: int) -> str:
    return declaration_digest(declaration(version))  # type: ignore[arg-type]


def progress(version: int, execution_id: int, seq: int) -> BusinessProgressRow:
    return BusinessProgressRow(
        execution_id=execution_id,
        projection=NAME,
        version=version,
        tenant_id=CARE.tenant_id,
        organization_id=CARE.organization_id,
        declaration=declaration(version),  # type: ignore[arg-type]
        declaration_digest=digest(version),
        problems=[],
        last_seq=seq,
        last_position=execution_id + seq,
    )


def state(version: int, execution_id: int, seq: int, facility: int) -> BusinessStateRow:
    return BusinessStateRow(
        execution_id=execution_id,
        projection=NAME,
        version=version,
        key_digest=f"{facility:064}",
        tenant_id=CARE.tenant_id,
        organization_id=CARE.organization_id,
        key_values=[facility],
        state='{"rows":1}',
        row_count=1,
        first_seq=1,
        last_seq=seq,
        first_position=1,
        last_position=execution_id + seq,
    )


@pytest.fixture
async def bench(place: Settings | None) -> AsyncIterator[Bench]:
    if place is None:
        store = MemoryProjections()
        yield Bench(MemoryVersions(store), store, MemoryBusiness(store))
        return
    async with open_pool(dsn(place, "project")) as pool:
        await pool.execute("DELETE FROM noetl.projection_version")
        real = PostgresProjections(pool)
        await real.clear()
        yield Bench(PostgresVersions(pool), real, PostgresBusiness(pool))


async def test_versions_come_back_as_they_were_saved(bench: Bench) -> None:
    await bench.build()

    found = (await bench.of()).all

    assert [(one.version, one.status, one.digest) for one in found] == [
        (1, "serving", digest(1)),
        (2, "shadow", digest(2)),
    ]
    assert found[1].declaration == declaration(2)
    assert (found[1].changed_at, found[1].cutover_position) == (AT, None)
    assert not (await bench.of(replace(CARE, organization_id="other"))).all


async def test_a_switch_records_the_position_and_is_taken_back(bench: Bench) -> None:
    await bench.build()
    for version in (1, 2):
        await bench.fold(version, 100, 7, 1)
        await bench.fold(version, 200, 3, 2)

    await bench.versions.change((await bench.of()).cutover(AT))
    serving = (await bench.of()).serving
    assert (serving.version, serving.cutover_position) == (2, 203)

    await bench.versions.change((await bench.of()).rollback(AT))
    assert [one.status for one in (await bench.of()).all] == ["serving", "shadow"]


async def test_a_version_that_lacks_events_of_an_execution_is_refused(bench: Bench) -> None:
    await bench.build()
    await bench.fold(1, 100, 7)
    await bench.fold(1, 200, 3)
    await bench.fold(2, 100, 6)
    await bench.fold(2, 300, 9)
    before = (await bench.of()).all

    with pytest.raises(NotCaughtUp, match="lacks events of 2 of 2 executions, such as 100"):
        await bench.versions.change((await bench.of()).cutover(AT))

    assert (await bench.of()).all == before
    places = await bench.reader.places(CARE, NAME, 1, 2)
    assert places == Places(executions=2, position=203, behind=2, apart=3, first_apart=100)


async def test_a_decision_on_older_versions_changes_nothing(bench: Bench) -> None:
    await bench.build()
    planned = (await bench.of()).cutover(AT)
    await bench.versions.change((await bench.of()).drop(2, AT))
    before = (await bench.of()).all

    with pytest.raises(VersionsChanged):
        await bench.versions.change(planned)

    assert (await bench.of()).all == before


async def test_a_dropped_version_loses_its_rows_and_no_others(bench: Bench) -> None:
    await bench.build()
    for version in (1, 2):
        await bench.fold(version, 100, 7, 1, 2)

    await bench.versions.change((await bench.of()).drop(2, AT))

    assert len(await bench.reader.states_of(100, NAME, 1)) == 2
    assert await bench.reader.states_of(100, NAME, 2) == []
    pages = [
        await bench.reader.progress_page(CARE, NAME, version, after_id=0, limit=5)
        for version in (1, 2)
    ]
    assert [len(one) for one in pages] == [1, 0]


async def test_pages_of_two_versions_are_by_key_and_then_by_version(bench: Bench) -> None:
    await bench.fold(1, 100, 7, 1, 3)
    await bench.fold(1, 200, 7, 2)
    await bench.fold(2, 100, 7, 2, 3)

    first = await bench.reader.page(CARE, NAME, [1, 2], wanted={}, after=None, limit=2)
    second = await bench.reader.page(CARE, NAME, [1, 2], wanted={}, after=first.next, limit=2)

    assert [(one.key_values, one.version) for one in [*first.states, *second.states]] == [
        ([1], 1),
        ([2], 1),
        ([2], 2),
        ([3], 1),
        ([3], 2),
    ]
    assert (first.next, second.next) == ([2], None)


async def test_a_snapshot_does_not_see_what_is_written_meanwhile(bench: Bench) -> None:
    await bench.build()
    await bench.fold(1, 100, 7, 1)
    async with bench.reader.snapshot() as reader:
        before = [one.status for one in await reader.versions([CARE])]
        await bench.fold(1, 200, 7, 2)
        await bench.versions.change((await bench.of()).drop(2, AT))

        page = await reader.page(CARE, NAME, [1], wanted={}, after=None, limit=5)

        assert [one.status for one in await reader.versions([CARE])] == before
        assert [one.key_values for one in page.states] == [[1]]
