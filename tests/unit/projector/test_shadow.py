"""Blue/green of projections: built in the shadow, compared, cut over, rolled back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from streams.events.model import Json
from streams.projector.business.declared import Declared, MemoryTexts
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.plugins import plugin_fold
from streams.projector.business.reading import BadFilter
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.shadow.core import BadShadow
from streams.projector.business.shadow.operations import (
    DifferenceNotAccepted,
    NoParity,
    UndeclaredDifference,
)
from streams.projector.business.shadow.port import NotCaughtUp, VersionsChanged
from streams.projector.rows import Row
from tests.support.projector.business import (
    CARE,
    CATALOG_ID,
    BusinessBench,
    checksums_in,
    progress_in,
    states_in,
)
from tests.support.projector.executions import Story, stored_events
from tests.support.projector.shadows import NOW, Shadows, declared_in, playbook_with

SECOND = declared_in(playbook_with(version=2))
WIDER = declared_in(playbook_with(version=2, column="visits: {count: patient}"))


def rows(*scores: int) -> list[Any]:
    return [{"facility": n % 2, "patient": n, "score": n, "kind": "mds"} for n in scores]


@pytest.fixture
async def bench() -> BusinessBench:
    made = BusinessBench()
    for execution_id in (1000, 2000):
        await made.project([await made.run(execution_id, rows(1, 2, 3), rows(4))])
    return made


@pytest.fixture
def shadows(bench: BusinessBench) -> Shadows:
    return Shadows(bench)


def change(bench: BusinessBench, kind: type[Row], version: int, **values: Any) -> None:
    """Change the first stored row of a version."""
    of_kind = [one for one in bench.store.rows.items() if isinstance(one[1], kind)]
    for key, row in of_kind:
        if key[1][1:3] == ("patients", version):
            bench.store.rows[key] = replace(row, **values)
            return
    raise AssertionError("nothing is stored")


async def test_an_equal_version_is_built_cut_over_and_rolled_back(shadows: Shadows) -> None:
    before = await shadows.served()

    done = await shadows.build(SECOND)

    assert (done.executions, await shadows.served()) == (2, before)
    assert await shadows.statuses() == {1: "serving", 2: "shadow"}
    comparison = await shadows.operations.compare("patients")
    assert comparison.is_equal
    assert (comparison.keys, comparison.equal, comparison.samples) == (2, 2, ())

    cutover = await shadows.operations.cutover("patients")

    assert await shadows.served() == (2, before[1])
    assert await shadows.statuses() == {1: "previous", 2: "serving"}
    assert cutover.parity is not None
    assert (cutover.parity.executions, cutover.parity.failures) == (2, ())
    last = max(one.last_position for one in progress_in(shadows.bench.store))
    assert (await shadows.version(2)).cutover_position == last

    await shadows.operations.rollback("patients")

    assert await shadows.served() == before
    assert await shadows.statuses() == {1: "serving", 2: "shadow"}


async def test_a_dry_run_of_a_cut_over_changes_nothing(shadows: Shadows) -> None:
    await shadows.build(SECOND)

    planned = await shadows.operations.cutover("patients", is_dry_run=True)

    assert [one.status for one in planned.change.after] == ["previous", "serving"]
    assert await shadows.statuses() == {1: "serving", 2: "shadow"}


async def test_projectors_maintain_every_version_of_every_execution(
    bench: BusinessBench, shadows: Shadows
) -> None:
    await shadows.register(WIDER)
    bench.texts[CATALOG_ID, 2] = playbook_with(version=2, column="visits: {count: patient}")
    await bench.project([await bench.run(3000, rows(5, 6))])
    story = Story(4000, catalog_id=CATALOG_ID)
    began = replace(story.began(), meta={"path": "examples/load", "version": 2})
    await bench.project([await bench.append(began, story.entered())])

    found = {one.key for one in progress_in(bench.store) if one.projection == "patients"}

    assert {(3000, "patients", 1), (3000, "patients", 2)} <= found
    assert {(4000, "patients", 1), (4000, "patients", 2)} <= found
    await shadows.fill()
    assert (await shadows.operations.compare("patients")).places.executions == 4


async def test_a_live_fold_and_a_build_give_the_same_rows(bench: BusinessBench) -> None:
    shadows = Shadows(bench)
    await shadows.register(WIDER)
    events = await bench.run(3000, rows(1, 3, 5), rows(7))
    await bench.project([events[:9]])
    await shadows.fill()
    await bench.project([events[9:]])
    both = checksums_in(bench.store)

    replayed = await bench.replay().state(3000, CARE)

    checksums = {
        (3000, one.fold.fold.name, one.fold.fold.version): one.checksum
        for one in replayed.projections
    }
    assert len(checksums) == 3
    assert {key: both[key] for key in checksums} == checksums


async def test_a_build_appends_nothing_and_is_repeatable(
    bench: BusinessBench, shadows: Shadows
) -> None:
    root = Story(1000).root
    before = await stored_events(bench.log, root)
    await shadows.build(WIDER)
    once = dict(bench.store.rows)

    await shadows.build(WIDER)

    assert bench.store.rows == once
    assert await stored_events(bench.log, root) == before


async def test_a_declared_difference_must_be_accepted(shadows: Shadows) -> None:
    await shadows.build(WIDER)
    comparison = await shadows.operations.compare("patients")
    assert not comparison.is_equal
    assert comparison.declared.lines == ('column visits: none -> {"count":"patient"}',)
    assert comparison.equal == comparison.keys == 2
    with pytest.raises(DifferenceNotAccepted, match=f"--accept {comparison.declared.digest}"):
        await shadows.operations.cutover("patients")
    with pytest.raises(DifferenceNotAccepted):
        await shadows.operations.cutover("patients", accepted="0" * 16)

    await shadows.operations.cutover("patients", accepted=comparison.declared.digest)

    assert (await shadows.served())[0] == 2


async def test_another_filter_may_change_every_row(shadows: Shadows) -> None:
    narrow = replace(WIDER, where={"kind": ("vital",)})
    await shadows.build(narrow)

    comparison = await shadows.operations.compare("patients")

    assert (comparison.only_serving, comparison.undeclared) == (2, ())
    assert comparison.declared.lines[0] == 'where: {"kind":["mds","vital"]} -> {"kind":["vital"]}'
    assert len(comparison.samples) == 2
    assert comparison.samples[0].shadow is None


async def test_a_difference_that_nobody_declared_is_refused(
    bench: BusinessBench, shadows: Shadows
) -> None:
    await shadows.build(WIDER)
    digest = (await shadows.operations.compare("patients")).declared.digest
    change(bench, BusinessStateRow, 2, row_count=77)

    with pytest.raises(UndeclaredDifference, match="1 rows differ in row_count"):
        await shadows.operations.cutover("patients", accepted=digest)

    assert (await shadows.served())[0] == 1


async def test_rows_that_the_log_does_not_give_are_refused_if_parity_is_required(
    bench: BusinessBench,
) -> None:
    shadows = Shadows(bench)
    await shadows.build(SECOND)
    for version in (1, 2):
        change(bench, BusinessStateRow, version, row_count=77)

    with pytest.raises(NoParity, match="execution 1000: stored states differ as of seq"):
        await shadows.operations.cutover("patients")

    assert (await shadows.served())[0] == 1
    done = await Shadows(bench, is_parity_required=False).operations.cutover("patients")
    assert (done.parity, (await shadows.served())[0]) == (None, 2)


async def test_payloads_that_expired_before_or_after_a_build_are_found(
    bench: BusinessBench, shadows: Shadows
) -> None:
    await shadows.build(SECOND)
    events = await stored_events(bench.log, Story(2000).root)
    lost = next(event.payload_ref for event in events if event.type == "frame.committed")
    assert lost is not None
    await bench.payloads.delete(lost)
    with pytest.raises(NoParity, match=f"execution 2000: .*{lost.uri}"):
        await shadows.operations.cutover("patients")

    await shadows.operations.drop("patients", 2)
    await shadows.build(SECOND)

    with pytest.raises(UndeclaredDifference, match="2 rows differ in row_count"):
        await shadows.operations.cutover("patients")


async def test_a_version_that_lacks_events_does_not_serve(
    bench: BusinessBench, shadows: Shadows
) -> None:
    await shadows.build(SECOND)
    await shadows.operations.cutover("patients")
    change(bench, BusinessProgressRow, 1, last_seq=3)

    with pytest.raises(NotCaughtUp, match="lacks events of 1 of 2 executions, such as 1000"):
        await shadows.operations.rollback("patients")
    (state,) = await shadows.operations.status()
    assert state.places is not None
    assert (state.places.behind, state.places.apart) == (1, 1)


async def test_versions_at_different_places_are_not_compared(
    bench: BusinessBench, shadows: Shadows
) -> None:
    await shadows.build(SECOND)
    change(bench, BusinessProgressRow, 2, last_seq=3)

    with pytest.raises(NotCaughtUp, match="different events of 1 executions, such as 1000"):
        await shadows.operations.compare("patients")


async def test_an_incomplete_version_does_not_serve(shadows: Shadows) -> None:
    await shadows.register(SECOND)

    with pytest.raises(BadShadow, match="version 2 is not complete"):
        await shadows.operations.cutover("patients")


async def test_a_version_that_is_in_the_way_is_named(shadows: Shadows) -> None:
    lower, third = replace(SECOND, version=1), replace(SECOND, version=3)
    with pytest.raises(BadShadow, match="no lower version has rows"):
        await shadows.register(lower)
    await shadows.build(SECOND)
    with pytest.raises(BadShadow, match="version 1 serves; a new one needs a higher number"):
        await shadows.register(lower)
    with pytest.raises(BadShadow, match="version 2 is in the shadow; drop it first"):
        await shadows.register(third)
    with pytest.raises(BadShadow, match="exists with another declaration; use the next number"):
        await shadows.register(WIDER)
    with pytest.raises(BadShadow, match="nothing to roll back to"):
        await shadows.operations.rollback("patients")
    await shadows.operations.cutover("patients")
    with pytest.raises(BadShadow, match="version 1 is maintained for a rollback; drop it first"):
        await shadows.register(third)
    with pytest.raises(BadShadow, match="version 2 serves; roll back first"):
        await shadows.operations.drop("patients", 2)


async def test_a_dropped_version_has_no_rows_and_gets_none(
    bench: BusinessBench, shadows: Shadows
) -> None:
    await shadows.build(SECOND)
    await shadows.operations.cutover("patients")

    await shadows.operations.drop("patients", 1)
    await bench.project([await bench.run(3000, rows(5, 6))])

    kept = {(one.projection, one.version) for one in progress_in(bench.store)}
    assert kept == {("patients", 2), ("frames", 1)}
    assert {one.version for one in states_in(bench.store) if one.projection == "patients"} == {2}
    assert (await shadows.served())[0] == 2
    with pytest.raises(BadShadow, match="no version 1 to drop"):
        await shadows.operations.drop("patients", 1)


async def test_two_commands_at_once_are_not_both_applied(shadows: Shadows) -> None:
    await shadows.build(SECOND)
    versions = await shadows.operations.versions("patients")
    planned = versions.cutover(versions.all[0].changed_at)
    await shadows.operations.drop("patients", 2)

    with pytest.raises(VersionsChanged, match="try again"):
        await shadows.store.change(planned)

    assert await shadows.statuses() == {1: "serving", 2: "dropped"}


async def test_further_pages_name_the_version_of_the_first_one(shadows: Shadows) -> None:
    await shadows.build(SECOND)
    first = await shadows.queries.page(CARE, "patients", limit=1)

    with pytest.raises(BadFilter, match="with the `version` of the first one"):
        await shadows.queries.page(CARE, "patients", after=first.next)

    second = await shadows.queries.page(CARE, "patients", version=1, after=first.next)
    assert [row.key["facility"] for row in [*first.rows, *second.rows]] == [0, 1]


class Highest:
    """The highest score of a facility, times a factor."""

    def __init__(self, version: int, factor: int) -> None:
        self.name, self.version, self._factor = "highest", version, factor
        self.source: Mapping[str, str] = {"step": "load"}
        self.key: Sequence[str] = ("facility",)

    def evolve(self, state: Json, row: Any) -> Json:
        return self.merge(state, {"scores": row["score"] * self._factor})

    def merge(self, one: Any, other: Any) -> Json:
        return {"scores": max(part["scores"] for part in (one, other) if part)}


async def test_new_code_of_a_package_serves_once_it_is_accepted() -> None:
    plugins = [plugin_fold(Highest(1, 1)), plugin_fold(Highest(2, 10))]
    bench = BusinessBench(plugins=plugins[:1])
    await bench.project([await bench.run(1000, rows(1, 2, 3))])
    bench.declared = Declared(MemoryTexts(bench.texts), plugins, MemoryBusiness(bench.store))
    shadows = Shadows(bench, plugins)
    versions = await shadows.operations.versions("highest")
    listed = await shadows.reader.projections(CARE)
    planned = versions.build(plugins[1].describe(), 2, listed, NOW.now())
    await shadows.store.change(planned)

    await shadows.fill("highest")

    assert await shadows.served("highest") == (1, {"0": 2, "1": 3})
    comparison = await shadows.operations.compare("highest")
    assert comparison.columns == {"scores": 2}
    assert comparison.undeclared == ()
    await shadows.operations.cutover("highest", accepted=comparison.declared.digest)
    assert await shadows.served("highest") == (2, {"0": 20, "1": 30})
