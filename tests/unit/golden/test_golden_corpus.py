"""The golden corpus: today's code decodes, verifies and folds it to the checksums in its files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streams.events.catalogue import catalogue
from streams.payload.content import check, describe
from streams.payload.objects.blocks import NoCipher, unpack
from streams.payload.port import Scope
from tests.golden.corpus import FOLDER, Log, read_lines, read_logs
from tests.golden.fold import expected_of
from tests.golden.record import Recording, files_of, recording, write
from tests.support.events.examples import codec

AT_LEAST = 1000


@pytest.fixture(scope="module")
def logs() -> list[Log]:
    return list(read_logs())


@pytest.fixture(scope="module")
def made() -> Recording:
    return recording()


def versions_in(logs: list[Log]) -> Counter[tuple[str, int]]:
    records = (codec().record(one.event.envelope) for log in logs for one in log.events)
    return Counter((record["event_type"], record["schema_version"]) for record in records)


def test_every_event_of_the_corpus_folds_to_the_checksums_in_its_files(logs: list[Log]) -> None:
    assert sum(len(log.events) for log in logs) >= AT_LEAST
    for log in logs:
        expected = read_lines(FOLDER, "expected", log.name)
        for found, line in zip(expected_of(log), expected, strict=True):
            assert found == line, f"{log.name}: {line['root']} seq {line['seq']} {line['type']}"


def test_every_type_and_schema_version_of_the_catalogue_is_in_the_corpus(logs: list[Log]) -> None:
    found = versions_in(logs)
    wanted = {
        (name, version)
        for name, kind in catalogue().types.items()
        for version in range(1, kind.version + 1)
    }
    assert not wanted - found.keys(), "run `python -m tests.golden.record` and commit its files"


def test_every_type_of_an_execution_is_in_one_that_is_folded(logs: list[Log]) -> None:
    found = {name for name, _ in versions_in([log for log in logs if log.is_folded])}
    assert {n for n, kind in catalogue().types.items() if kind.root == "execution"} == found


def test_the_recorder_writes_the_files_of_the_corpus(made: Recording, tmp_path: Path) -> None:
    write(made, tmp_path)
    for path, data in files_of(made):
        name = path.removesuffix(".jsonl")
        if name == path:
            assert (FOLDER / path).read_bytes() == data, path
        else:
            kind, _, log = name.partition("/")
            assert read_lines(FOLDER, kind, log) == read_lines(tmp_path, kind, log), path
    parts = ("logs", "expected", "payloads")
    stored = [
        {p.relative_to(root) for part in parts for p in (root / part).rglob("*")}
        for root in (FOLDER, tmp_path)
    ]
    assert stored[0] == stored[1], "run `python -m tests.golden.record` and commit its files"


def test_every_payload_is_what_its_description_says(made: Recording) -> None:
    for key, described in made.payloads.described.items():
        tenant, organization, _, digest = key.split("/")
        scope = Scope(tenant, organization)
        stored = (FOLDER / "payloads" / key).read_bytes()
        data = unpack(scope, stored, described["byte_length"], NoCipher())
        ref = describe(scope, data, media_type=described["media_type"])
        assert check(ref, data) == data
        assert ref.sha256 == digest == described["sha256"]


def test_an_event_that_changed_is_noticed(logs: list[Log]) -> None:
    log = next(one for one in logs if one.name == "commands")
    first = log.events[0]
    envelope = bytearray(first.event.envelope)
    envelope[-1] ^= 1
    changed = first.event._replace(envelope=bytes(envelope))
    damaged = type(first)(first.root, changed)
    with pytest.raises(AssertionError, match="checksum"):
        list(expected_of(Log(log.name, True, [damaged])))
