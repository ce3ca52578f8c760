"""The reader in Rust finds in the golden corpus what Python finds, and notices every change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.events.catalogue import catalogue
from streams.events.types import ALL
from tests.golden.corpus import (
    FOLDER,
    Line,
    Log,
    expected_lines,
    log_lines,
    packed,
    read_lines,
    read_logs,
)
from tests.support.golden.reader import ROOT, answer, cargo, run

pytestmark = pytest.mark.timeout(900)  # the first build
SCHEMAS = ("--schemas", ROOT / "avro_schemas")
NAME = "commands"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the corpus that a test can change."""
    parts = ("logs", "expected", "payloads")
    for part in parts:
        shutil.copytree(FOLDER / part, tmp_path / part)
    for name in ("manifest.json", "payloads.json"):
        shutil.copy(FOLDER / name, tmp_path / name)
    return tmp_path


def change_log(folder: Path, change: Callable[[Line], None]) -> None:
    """Change the third event of a log."""
    lines = read_lines(folder, "logs", NAME)
    change(lines[2])
    (folder / "logs" / f"{NAME}.jsonl.gz").write_bytes(packed(expected_lines(lines)))


def check(folder: Path) -> str:
    """Return the error of a check, which must fail."""
    done = run("check", folder, *SCHEMAS)
    assert done.returncode == 1, done.stdout
    return done.stderr


def test_the_reader_folds_the_corpus_to_the_same_checksums() -> None:
    events = sum(len(log.events) for log in read_logs())
    payloads = len(orjson.loads((FOLDER / "payloads.json").read_bytes()))
    found = answer("check", FOLDER)
    assert found == {"identical": True, "events": events, "payloads": payloads}


def test_its_fold_prints_the_last_checksums_of_every_execution() -> None:
    found: Any = answer("fold", FOLDER)
    expected = {
        line["root"]: {name: line[name] for name in ("root", "seq", "checksums")}
        for log in read_logs()
        if log.is_folded
        for line in read_lines(FOLDER, "expected", log.name)
    }
    assert found == list(expected.values())


@pytest.mark.parametrize("projection", ["execution", "stage", "frame", "command", "result_ref"])
def test_another_expected_checksum_is_noticed_at_its_event(copy: Path, projection: str) -> None:
    lines = read_lines(copy, "expected", NAME)
    first = lines[4]["checksums"][projection]
    lines[4]["checksums"][projection] = ("1" if first[0] == "0" else "0") + first[1:]
    (copy / "expected" / f"{NAME}.jsonl.gz").write_bytes(packed(expected_lines(lines)))
    error = check(copy)
    assert f"{NAME}: {lines[4]['root']} seq 5 ({lines[4]['type']}): {projection} is" in error


def test_a_changed_byte_of_an_envelope_is_noticed(copy: Path) -> None:
    (log,) = (one for one in read_logs(copy) if one.name == NAME)
    third = log.events[2]
    envelope = bytearray(third.event.envelope)
    envelope[envelope.index(b"step.enter")] ^= 1
    changed = type(third)(third.root, third.event._replace(envelope=bytes(envelope)))
    events = [*log.events[:2], changed, *log.events[3:]]
    (copy / "logs" / f"{NAME}.jsonl.gz").write_bytes(packed(log_lines(Log(NAME, True, events))))
    assert f"{NAME}: {third.root} seq 3: it does not match its checksum" in check(copy)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda line: line.update(chain="00" * 32), "seq 3: its chain does not follow"),
        (lambda line: line.update(seq=4), "the event at seq 3 is missing"),
        (lambda line: line.update(checksum="00" * 32), "seq 3: it does not match its checksum"),
        (lambda line: line.update(stream_version=99, ingest_time=""), "is not a time in UTC"),
    ],
)
def test_another_place_in_the_log_is_noticed(
    copy: Path, change: Callable[[Line], None], error: str
) -> None:
    change_log(copy, change)
    assert error in check(copy)


def test_a_later_time_of_an_event_changes_the_checksums(copy: Path) -> None:
    change_log(copy, lambda line: line.update(ingest_time="2027-01-01T00:00:00.000001Z"))
    assert "seq 3 (step.enter): execution is" in check(copy)


def test_a_changed_payload_is_noticed(copy: Path) -> None:
    path = next(one for one in sorted((copy / "payloads").rglob("*")) if one.is_file())
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    assert f"payloads/{path.relative_to(copy / 'payloads')}" in check(copy)


def test_a_schema_that_is_not_in_the_ledger_is_named(copy: Path) -> None:
    def other(line: Line) -> None:
        line["envelope"] = "AAAAAAk" + line["envelope"][7:]

    change_log(copy, other)
    assert "schema id 9 is not in avro_schemas/ids.yaml" in check(copy)


def test_its_table_of_types_is_that_of_the_catalogue() -> None:
    classes = {one.TYPE: {field.name for field in fields(one)} for one in ALL}
    assert answer("types") == {
        name: {
            "version": kind.version,
            "has_node": "node_name" in classes[name],
            "required_meta": [field.name for field in kind.meta.values() if field.required],
        }
        for name, kind in catalogue().types.items()
    }


def test_its_own_unit_tests_pass() -> None:
    cargo("test")
