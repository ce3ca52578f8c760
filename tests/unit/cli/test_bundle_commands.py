"""`streams bundle verify` and `show`: from a file, without settings or servers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from streams.cli import cli
from streams.errors import Refused
from streams.replay.bundle.errors import NotInBundle
from tests.support.replay.benches import ReplayBench

ID = 1000


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    async def export() -> None:
        bench = ReplayBench()
        await bench.with_payloads(ID)
        await bench.with_payloads(2000)
        bench.children = {ID: [2000]}
        await bench.export(ID, tmp_path / "run.bundle", children=True)

    asyncio.run(export())
    return tmp_path / "run.bundle"


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["bundle", *map(str, words)])


def test_a_whole_bundle_is_proven_line_by_line(bundle: Path) -> None:
    found = run("verify", bundle)
    assert found.exit_code == 0
    lines = found.output.splitlines()
    assert [line.split()[:2] for line in lines[:4]] == [
        ["passed", name] for name in ("file", "events", "fold", "payloads")
    ]
    assert f"{ID}, 19 events, chain " in lines[4]


def test_a_changed_bundle_is_exit_code_1_and_names_the_event(bundle: Path) -> None:
    data = bundle.read_bytes()
    bundle.write_bytes(data.replace(b"story/7", b"story/8", 1))
    found = run("verify", bundle, "--json")
    assert found.exit_code == 1
    report = orjson.loads(found.stdout)
    assert report["is_proven"] is False
    assert report["checks"][0]["first"] == f"events/{ID}/000000000001.events, event 7"


def test_events_are_listed_page_by_page(bundle: Path) -> None:
    found = run("show", bundle)
    assert found.exit_code == 0
    assert "page          1 of 1" in found.output
    assert len([line for line in found.output.splitlines() if line.startswith("      ")]) == 19
    child = orjson.loads(run("show", bundle, "--execution", 2000, "--json").stdout)
    assert (child["execution_id"], child["executions"]) == ("2000", [str(ID), "2000"])
    assert len(child["events_of_page"]) == 19


def test_an_event_is_shown_with_the_state_after_it(bundle: Path) -> None:
    listed = orjson.loads(run("show", bundle, "--json").stdout)["events_of_page"]
    by_place = orjson.loads(run("show", bundle, "--at", 7, "--json").stdout)
    by_id = orjson.loads(run("show", bundle, "--event", listed[6]["event_id"], "--json").stdout)
    assert by_place == by_id
    assert by_place["event"] == listed[6]
    assert by_place["as_of"]["position"] == 7
    assert {one["status"] for one in by_place["state"]["frames"]["open"]} == {"CLAIMED", "PENDING"}
    assert "checksum " in run("show", bundle, "--at", 7).output


def test_what_a_bundle_does_not_have_is_refused(bundle: Path) -> None:
    page, execution = run("show", bundle, "--page", 2), run("show", bundle, "--execution", 9)
    assert "has the pages 1 to 1" in str(page.exception)
    assert isinstance(execution.exception, NotInBundle)
    assert "are given" in str(run("show", bundle, "--at", 1, "--event", 2).exception)


@pytest.mark.parametrize("words", [[], ["7", "--all"]])
def test_replay_verify_needs_executions_or_all(words: list[str]) -> None:
    done = CliRunner().invoke(cli, ["replay", "verify", *words])
    assert "give execution ids, or --all" in str(done.exception)


def test_a_file_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a bundle")
    assert isinstance(run("verify", tmp_path / "notes").exception, Refused)
    assert "cannot be read" in str(run("show", tmp_path / "none").exception)
