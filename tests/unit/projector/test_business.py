"""Business projections: the same rows count once, in whatever batches their events arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.errors import Refused
from streams.events.model import Event, Json
from streams.playbook.declarations import Source
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.plugins import GROUP, BadProjection, installed, plugin_fold
from streams.projector.business.reading import (
    AmbiguousProjection,
    BadFilter,
    BusinessQueries,
    NoSuchProjection,
)
from streams.projector.business.rows import BusinessStateRow
from streams.projector.heads import ScannedRootHeads
from streams.projector.memory import MemoryProjections
from streams.projector.rebuild import rebuild
from tests.support.projector.business import (
    CARE,
    PLAYBOOK,
    BusinessBench,
    checksums_in,
    progress_in,
)


def row(facility: object, patient: int, score: object, kind: object = "mds") -> dict[str, Any]:
    return {"facility": facility, "patient": patient, "score": score, "kind": kind}


async def merged(
    store: MemoryProjections, name: str = "patients", **query: Any
) -> list[tuple[list[Json], Mapping[str, Json]]]:
    page = await BusinessQueries(MemoryBusiness(store)).page(CARE, name, **query)
    return [(list(one.key.values()), one.values) for one in page.rows]


async def test_rows_of_all_executions_are_aggregated_by_key() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [row("a", 1, 0.1), row("a", 2, 0.2)], [row("b", 3, 5)])
    events += await bench.run(2000, [row("a", 1, 7), row("a", 9, None, "other")])

    await bench.project([events])

    assert await merged(bench.store) == [
        (
            ["a"],
            {"patients": 2, "rows": 3, "scores": 7.3, "least": 0.1, "most": 7, "latest": 7},
        ),
        (["b"], {"patients": 1, "rows": 1, "scores": 5, "least": 5, "most": 5, "latest": 5}),
    ]
    assert await merged(bench.store, "frames") == [(["load", "success"], {"frames": 3, "rows": 15})]
    assert [one.problems for one in progress_in(bench.store)] == [[]] * 4


async def test_each_payload_is_read_once() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [row("a", 1, 1), row("a", 2, 2)], [row("b", 3, 5)])

    await bench.project([events[:9], events[9:]])

    assert len(bench.tables.reads) == len(set(bench.tables.reads)) == 3


async def test_a_row_counts_once_though_its_frame_had_two_attempts() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [row("a", 1, 1), row("a", 2, 2), row("a", 3, 3)])

    await bench.project([[event] for event in events])

    ((_, values),) = await merged(bench.store)
    assert (values["rows"], values["scores"]) == (3, 6)


async def test_a_missing_payload_is_named_and_holds_up_nobody() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [row("a", 1, 1)], [row("a", 2, 2)])
    (lost,) = [event for event in events if event.type == "frame.committed"][:1]
    assert lost.payload_ref is not None
    await bench.payloads.delete(lost.payload_ref)

    await bench.project([events])

    ((_, values),) = await merged(bench.store)
    assert values["rows"] == 1
    (progress,) = [one for one in progress_in(bench.store) if one.projection == "patients"]
    assert progress.last_seq == len(events)
    assert progress.problems == [
        {
            "what": f"rows of frame {lost.meta['frame_id']} are missing (PayloadMissing)",
            "object": lost.payload_ref.uri,
            "seq": lost.seq,
            "count": 1,
        }
    ]


async def test_a_column_that_no_row_has_is_named() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [{"facility": "a", "kind": "mds", "score": 1}])

    await bench.project([events])

    (progress,) = [one for one in progress_in(bench.store) if one.projection == "patients"]
    assert [one["what"] for one in progress.problems] == ["rows without the column 'patient'"]


async def test_values_that_are_no_numbers_are_not_summed_but_compared() -> None:
    bench = BusinessBench()
    rows: list[Json] = [row("a", 1, "x"), row("a", 1, 2), row("a", 1, None)]
    await bench.project([await bench.run(1000, rows)])

    ((_, values),) = await merged(bench.store)
    assert values == {
        "patients": 1, "rows": 3, "scores": 2, "least": 2, "most": "x", "latest": 2,
    }  # fmt: skip
    page = await BusinessQueries(MemoryBusiness(bench.store)).page(CARE, "patients")
    assert [one.skipped for one in page.rows] == [{"scores": 1}]


async def test_a_rebuild_gives_the_same_rows() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [row("a", 1, 0.1), row("b", 2, 2)], [row("a", 3, 0.2)])
    await bench.project([events[:7], events[7:]])
    before = dict(checksums_in(bench.store))
    for key, one in list(bench.store.rows.items()):
        if isinstance(one, BusinessStateRow):  # damaged, and one that the log does not make
            bench.store.rows[key] = replace(one, state="{}")
            other = replace(one, key_digest="0" * 64)
            bench.store.rows[BusinessStateRow, other.key] = other

    heads = ScannedRootHeads(bench.log)
    await rebuild(heads, bench.log, bench.store, business=bench.folds_of)

    assert checksums_in(bench.store) == before


async def test_lost_rows_come_back_with_the_next_event() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [row("a", 1, 1), row("b", 2, 2)], [row("c", 3, 3)])
    await bench.project([events])
    before = dict(checksums_in(bench.store))
    await bench.store.clear()

    await bench.project([events[-1:]])

    assert checksums_in(bench.store) == before


_rows = st.builds(
    row,
    st.sampled_from(["a", "b", 3, None]),
    st.integers(0, 3),
    st.one_of(
        st.none(),
        st.integers(-(2**40), 2**40),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.sampled_from(["x", ""]),
    ),
    st.sampled_from(["mds", "vital", "other"]),
)
_executions = st.lists(
    st.lists(st.lists(_rows, max_size=4), min_size=1, max_size=2), min_size=1, max_size=3
)


@given(_executions, st.data())
@settings(max_examples=25, deadline=None)
async def test_any_batches_order_and_redelivery_give_the_rows_of_one_pass(
    executions: list[list[list[dict[str, Json]]]], data: st.DataObject
) -> None:
    bench = BusinessBench()
    events: list[Event] = []
    for number, frames in enumerate(executions):
        events += await bench.run(1000 * (number + 1), *frames)
    whole, parts = MemoryProjections(), MemoryProjections()
    await bench.project([events], whole)

    order = data.draw(st.permutations(events))
    arriving = order + data.draw(st.lists(st.sampled_from(events), max_size=5))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arriving)), max_size=4)))
    bounds = [0, *cuts, len(arriving)]
    await bench.project([arriving[a:b] for a, b in pairwise(bounds)], parts)

    assert checksums_in(parts) == checksums_in(whole)
    for name in ("patients", "frames"):
        if any(one.projection == name for one in progress_in(whole)):
            assert await merged(parts, name) == await merged(whole, name)


class Longest:
    """The longest name of each facility."""

    name, version = "longest", 2
    source: Mapping[str, str] = {"step": "load"}
    key = ("facility",)

    def evolve(self, state: Json, row: Mapping[str, object]) -> Json:
        return self.merge(state, {"name": str(row["name"])})

    def merge(self, one: Json, other: Json) -> Json:
        found = [state["name"] for state in (one, other) if isinstance(state, dict)]
        return {"name": max(map(str, found), key=lambda name: (len(name), name))}


class NoKey(Longest):
    key = ()  # type: ignore[assignment]


LONGEST = Longest()


async def test_a_package_brings_a_projection_of_its_own() -> None:
    fold = plugin_fold(Longest())
    bench = BusinessBench(PLAYBOOK, [fold])
    rows: list[Json] = [
        {"facility": 1, "name": "Bo"},
        {"facility": 1, "name": "Johanna"},
        {"facility": 2},
    ]
    events = await bench.run(1000, rows[:2], rows[2:])
    await bench.project([events[:8], events[8:]])

    page = await BusinessQueries(MemoryBusiness(bench.store), [fold]).page(CARE, "longest")
    assert [(one.key, one.values) for one in page.rows] == [({"facility": 1}, {"name": "Johanna"})]
    (progress,) = [one for one in progress_in(bench.store) if one.projection == "longest"]
    assert [one["what"] for one in progress.problems] == [
        "evolve of longest failed: KeyError: 'name'"
    ]
    assert fold.source == Source("step", "load")


def test_packages_are_found_by_their_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "longest-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: longest\nVersion: 1\n")
    entry = f"[{GROUP}]\nlongest = {__name__}:LONGEST\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = installed.__wrapped__()

    assert [(one.name, one.version, one.key) for one in found] == [("longest", 2, ("facility",))]
    with pytest.raises(BadProjection, match="needs a name, a version from 1, a key"):
        plugin_fold(NoKey())


async def test_pages_follow_the_order_of_the_keys_and_filters_their_columns() -> None:
    bench = BusinessBench()
    rows: list[Json] = [row(n, 1, n) for n in (10, 9, 2)]
    await bench.project([await bench.run(1000, rows)])
    queries = BusinessQueries(MemoryBusiness(bench.store))

    first = await queries.page(CARE, "patients", limit=2)
    second = await queries.page(CARE, "patients", limit=2, after=first.next)
    one = await queries.page(CARE, "patients", filters={"facility": "9"})

    assert [r.key["facility"] for r in first.rows] == [2, 9]
    assert ([r.key["facility"] for r in second.rows], second.next) == ([10], None)
    assert [r.values["latest"] for r in one.rows] == [9]
    with pytest.raises(BadFilter, match="filter by facility"):
        await queries.page(CARE, "patients", filters={"patient": "1"})
    with pytest.raises(NoSuchProjection, match="there are frames, patients"):
        await queries.page(CARE, "patient")
    assert issubclass(NoSuchProjection, Refused)


async def test_two_declarations_of_one_name_and_version_are_not_mixed() -> None:
    bench = BusinessBench()
    await bench.project([await bench.run(1000, [row("a", 1, 1)])])
    other = BusinessBench(PLAYBOOK.replace("{sum: score}", "{sum: patient}"))
    await other.project([await other.run(2000, [row("a", 1, 1)])], bench.store)

    with pytest.raises(AmbiguousProjection, match="2 declarations"):
        await BusinessQueries(MemoryBusiness(bench.store)).page(CARE, "patients")
