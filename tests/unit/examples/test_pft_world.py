"""The mock world of the PFT workload is what it says it is."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from examples.pft.world import KINDS, PAGES, VALUES, Faults, World, mds_id

WORLD = World(facilities=2, patients=20, rows_per_page=3, mds_every=10)


def body_at(world: World, path: bytes) -> dict[str, object]:
    body = world.answer(path)
    assert body is not None, path
    said: dict[str, object] = json.loads(body)
    return said


def test_a_patient_takes_twelve_requests() -> None:
    world = World(facilities=10, patients=1000, mds_every=0)

    assert sum(world.expected()["requests"].values()) == 10 * 1000 * 12


@pytest.mark.parametrize("kind", KINDS)
def test_every_path_of_a_complete_run_is_answered_with_the_rows_it_names(kind: str) -> None:
    rows = 0
    for path in WORLD.paths(kind):
        place = WORLD.place(path)
        assert place is not None
        data = body_at(WORLD, path)["data"]
        found = data if isinstance(data, list) else [data]
        assert [(row["row_key"], row["value"]) for row in found] == WORLD.keys(*place)
        rows += len(found)

    assert rows == WORLD.expected()["rows"][kind]
    assert len(list(WORLD.paths(kind))) == WORLD.expected()["requests"][kind]


def test_the_last_page_says_that_there_are_no_more() -> None:
    for kind, pages in PAGES.items():
        more = [
            body_at(WORLD, b"/facilities/1/patients/2/%s?page=%d" % (kind.encode(), page))["paging"]
            for page in range(1, pages + 1)
        ]

        assert more == [{"page": n, "hasMore": n < pages} for n in range(1, pages + 1)]


def test_the_assessments_name_every_detail_once() -> None:
    named = Counter(
        row["mds_id"]
        for path in WORLD.paths("assessments")
        for row in body_at(WORLD, path)["data"]  # type: ignore[attr-defined]
        if row["mds_id"] is not None
    )

    assert named == Counter(int(path[5:]) for path in WORLD.paths("mds_details"))
    assert len(named) == 2 * 2 * 4


def test_texts_that_look_like_something_else_are_among_the_values() -> None:
    values = {
        value for path in WORLD.paths("conditions") for _, value in WORLD.keys(*WORLD.place(path))
    }

    assert values == set(VALUES) >= {"12345", "1e5", "None", "true", ""}


@pytest.mark.parametrize(
    "path",
    [
        b"/facilities/3/patients/1/assessments?page=1",
        b"/facilities/1/patients/21/assessments?page=1",
        b"/facilities/1/patients/1/assessments?page=5",
        b"/facilities/1/patients/1/assessments?page=x",
        b"/facilities/1/patients/1/secrets",
        b"/mds/%d" % mds_id(1, 11, 1),
        b"/mds/none",
        b"/",
        b"",
    ],
)
def test_there_is_nothing_at_other_paths(path: bytes) -> None:
    assert WORLD.answer(path) is None


def test_the_same_requests_fail_in_every_run_and_retries_get_through() -> None:
    faults = Faults(busy_rate=0.05, silent_rate=0.01, seed=7)
    paths = list(World(facilities=10, patients=100).paths("assessments"))
    drawn = Counter(faults.of(path, 1) for path in paths)

    assert [faults.of(path, 1) for path in paths] == [faults.of(path, 1) for path in paths]
    assert drawn["busy"] == pytest.approx(0.05 * len(paths), rel=0.25)
    assert drawn["silent"] == pytest.approx(0.01 * len(paths), rel=0.5)
    assert all(None in {faults.of(path, attempt) for attempt in range(1, 9)} for path in paths)
    assert [Faults(busy_rate=0.05, seed=8).of(path, 1) for path in paths] != [
        Faults(busy_rate=0.05, seed=7).of(path, 1) for path in paths
    ]
