"""Output of `streams projections shadow`, of versions in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from streams.cli.shadow_output import (
    print_change,
    print_comparison,
    print_cutover,
    print_states,
)
from tests.support.projector.business import BusinessBench
from tests.support.projector.shadows import NOW, Shadows, declared_in, playbook_with

WIDER = declared_in(playbook_with(version=2, column="visits: {count: patient}"))


@pytest.fixture
async def shadows() -> Shadows:
    bench = BusinessBench()
    rows: list[Any] = [{"facility": 1, "patient": 2, "score": 3, "kind": "mds"}]
    await bench.project([await bench.run(1000, rows)])
    made = Shadows(bench)
    await made.build(WIDER)
    return made


async def test_a_comparison_names_what_differs_and_how_to_accept_it(
    shadows: Shadows, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await shadows.operations.compare("patients")
    print_comparison(found, as_json=False)
    text = capsys.readouterr().out
    print_comparison(found, as_json=True)
    printed = json.loads(capsys.readouterr().out)

    assert "1, of which 1 are equal in shared columns" in text
    assert 'declared      column visits: none -> {"count":"patient"}' in text
    assert text.endswith(f"--accept {found.declared.digest}\n")
    assert (printed["is_equal"], printed["undeclared"]) == (False, [])
    assert printed["checksums"]["serving"] != printed["checksums"]["shadow"]


async def test_rows_that_differ_without_a_reason_are_printed(
    shadows: Shadows, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await shadows.operations.compare("patients")

    print_comparison(replace(found, columns={"scores": 1}), as_json=False)

    text = capsys.readouterr().out
    assert "UNDECLARED    1 rows differ in scores" in text
    assert "--accept" not in text


async def test_a_cut_over_prints_versions_and_parity(
    shadows: Shadows, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = (await shadows.operations.compare("patients")).declared.digest
    planned = await shadows.operations.cutover("patients", accepted=accepted, is_dry_run=True)
    print_cutover(planned, as_json=False)
    assert "patients v2 would be serving\n" in capsys.readouterr().out

    done = await shadows.operations.cutover("patients", accepted=accepted)
    print_cutover(done, as_json=False)
    text = capsys.readouterr().out
    position = (await shadows.version(2)).cutover_position
    assert text.startswith("parity        1 executions, 9 events replayed\n")
    assert f"patients v2 is serving, cut over at position {position}\n" in text
    print_states(await shadows.operations.status(), as_json=False)
    assert "1 executions: 0 behind, 0 not in step" in capsys.readouterr().out


async def test_a_change_without_new_versions_and_a_state_without_any_are_said(
    shadows: Shadows, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = await shadows.operations.versions("patients")
    listed = await shadows.reader.projections(versions.scope)
    print_change(versions.build(WIDER.to_json(), 2, listed, NOW.now()), as_json=False)
    print_states([], as_json=False)

    assert capsys.readouterr().out.splitlines() == [
        "patients: its versions stay; missing rows are folded",
        "every projection is served in its newest version",
    ]
