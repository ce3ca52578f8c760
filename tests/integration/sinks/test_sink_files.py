"""Sinks to the log and to files, and those whose driver is not there."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from streams.playbook.sinks.storages import plugged
from tests.support.worker.sinks import Sinks, call, kind

GREMLIN = """
class Driver:
    def __init__(self, around):
        assert around.deployment == "test"
    async def write(self, job):
        return {"store": job.storage, "key": job.statement, "range": ""}
    async def close(self):
        pass
"""


def killed(*_: object) -> None:
    raise RuntimeError("killed")


def files_in(folder: Path) -> list[str]:
    return [str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()]


async def test_the_event_log_has_the_result_anyway(sinks: Sinks) -> None:
    reference = await sinks.twice({"storage": "event_log"})
    assert reference == {"store": "event_log", "key": "execution/7/step/load", "range": ""}
    reference = await sinks.twice({"data": {"a": "{{ result }}"}}, result=5)
    assert reference["data"] == {"a": 5}
    large = await sinks.once({"data": "{{ result }}"}, result="x" * 20_000)
    assert kind(large) == "event_log.config"


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
async def test_a_file_is_written_in_every_format(sinks: Sinks, tmp_path: Path, format: str) -> None:
    rows = [{"id": 1, "v": "1e5"}, {"id": 2, "v": "None"}]
    block = {"storage": "file", "format": format, "data": "{{ result }}"}
    reference = await sinks.twice(block, result=rows)
    content = (tmp_path / reference["key"]).read_bytes()
    if format == "json":
        assert orjson.loads(content) == rows
    elif format == "csv":
        found = list(csv.DictReader(io.StringIO(content.decode())))
        assert found == [{"id": "1", "v": "1e5"}, {"id": "2", "v": "None"}]
    else:
        assert pq.read_table(io.BytesIO(content)).to_pylist() == rows
    assert [reference["key"]] == files_in(tmp_path)


async def test_a_list_goes_to_several_files(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "spec": {"path": "a/b.json"}, "chunk_size": 2, "data": [1, 2, 3]}
    reference = await sinks.twice(block)
    assert reference == {"store": "file", "key": "a/b.json", "range": "parts:2"}
    found = {one.name: one.read_text() for one in (tmp_path / "a").iterdir()}
    assert found == {"b-00000.json": "[1,2]", "b-00001.json": "[3]"}


async def test_parts_that_a_longer_list_left_are_removed(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "spec": {"path": "b.json"}, "chunk_size": 1, "data": "{{ result }}"}
    other = tmp_path / "b-x.json"
    other.write_text("")
    for result, files in (([1, 2, 3], 3), ([4, 5], 2), ([6], 1), ([], 1)):
        reference = await sinks.twice(block, result=result)
        assert reference == {"store": "file", "key": "b.json", "range": f"parts:{files}"}
        expected = [f"b-{n:05}.json" for n in range(files)]
        assert sorted(files_in(tmp_path)) == [*expected, other.name]
    assert (tmp_path / "b-00000.json").read_text() == "[]"
    whole = {"storage": "file", "spec": {"path": "b.json"}, "data": 1}
    assert (await sinks.twice(whole))["range"] == ""
    assert "b-00000.json" in files_in(tmp_path)  # without parts, nobody's parts are touched
    assert (await sinks.twice({**whole, "chunk_size": 1}))["range"] == ""
    assert sorted(files_in(tmp_path)) == [other.name, "b.json"]


async def test_rows_that_do_not_go_together_are_parts_of_one(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "spec": {"path": "b"}, "batch": False, "data": [1, 2]}
    assert (await sinks.twice(block))["range"] == "parts:2"
    assert [(tmp_path / f"b-0000{n}").read_text() for n in (0, 1)] == ["[1]", "[2]"]


async def test_rows_are_appended_in_the_columns_of_a_csv_file(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "mode": "append", "format": "csv", "spec": {"path": "l.csv"}}
    block["data"] = "{{ result }}"
    results = ([], {"a": 1, "b": "x,y"}, [], [{"b": 4, "a": 3}, {"b": 5}])
    for result in results:
        assert (await sinks.once(block, result=result)).status == "success"
    strange = await sinks.once(block, result={"a": 1, "c": 2})
    assert kind(strange) == "file.config"
    assert "no column 'c'; it has a, b" in str(strange.error)
    assert (tmp_path / "l.csv").read_text() == 'a,b\n1,"x,y"\n3,4\n,5\n'
    (tmp_path / "l.csv").write_bytes(b'\xef\xbb\xbf"b\nb",a\r\n1,2')
    await sinks.once(block, result={"a": 3, "b\nb": 4})
    assert (tmp_path / "l.csv").read_bytes().endswith(b"1,2\n4,3\n")


@pytest.mark.parametrize(
    ("format", "value", "expected"),
    [
        ("parquet", {}, "file.config"),
        ("parquet", 2**70, "file.config"),
        ("parquet", "\ud800", "file.value"),
        ("json", 2**70, "file.value"),
        ("json", "\ud800", "file.value"),
        ("csv", "\ud800", "file.value"),
        ("csv", {"b": 2**70}, "file.value"),
    ],
)
async def test_a_value_that_a_format_cannot_hold_is_said(
    sinks: Sinks, tmp_path: Path, format: str, value: object, expected: str
) -> None:
    block = {"storage": "file", "format": format, "data": "{{ result }}"}
    assert kind(await sinks.once(block, result=[{"a": value}])) == expected
    assert files_in(tmp_path) == []


async def test_lines_are_appended(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "mode": "append", "spec": {"path": "l"}, "data": "{{ result }}"}
    for result in (1, [2, 3]):
        assert (await sinks.once(block, result=result)).status == "success"
    assert (tmp_path / "l").read_text() == "1\n2\n3\n"


async def test_a_killed_attempt_leaves_nothing_beside_the_file(
    sinks: Sinks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, block = call(), {"storage": "file", "spec": {"path": "x.json"}, "data": 1}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(RuntimeError, match="killed"):
            await sinks.once(block, at)
    assert len(files_in(tmp_path)) == 1
    assert (await sinks.once(block, replace(at, attempt=3))).status == "success"
    assert files_in(tmp_path) == ["x.json"]


async def test_a_line_that_a_kill_cut_off_spoils_no_other(sinks: Sinks, tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b'{"n":1}\n{"n"')
    block = {"storage": "file", "mode": "append", "spec": {"path": "l"}, "data": {"n": 2}}
    await sinks.once(block)
    assert (tmp_path / "l").read_text() == '{"n":1}\n{"n"\n{"n":2}\n'


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", "a\0b", ".", "out/x"])
async def test_no_file_leaves_the_folder(sinks: Sinks, tmp_path: Path, path: str) -> None:
    (tmp_path / "out").symlink_to("/tmp", target_is_directory=True)
    block = {"storage": "file", "spec": {"path": "{{ result }}"}, "data": 1}
    outcome = await sinks.once(block, result=path)
    assert kind(outcome) == "file.config"


async def test_a_missing_driver_is_named_when_it_is_needed(sinks: Sinks) -> None:
    config = {"storage": "graph", "driver": "gremlin", "statement": "g.V()"}
    outcome = await sinks.tool.run(config, call())
    assert kind(outcome) == "graph.config"
    assert "streams.sinks" in str(outcome.error)


async def test_a_package_brings_a_driver_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "package" / "gremlin_sink-1.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: gremlin_sink\nVersion: 1\n")
    (place / "entry_points.txt").write_text(
        "[streams.sinks]\ngraph.gremlin = gremlin_sink:Driver\n"
    )
    (place.parent / "gremlin_sink.py").write_text(GREMLIN)
    monkeypatch.syspath_prepend(place.parent)
    plugged.cache_clear()
    sinks = Sinks(tmp_path)
    block = {"storage": "graph", "spec": {"dialect": "gremlin"}, "statement": "g.V()"}
    try:
        reference = await sinks.twice(block)
        await sinks.tool.close()
    finally:
        plugged.cache_clear()
    assert reference == {"store": "graph", "key": "g.V()", "range": ""}


async def test_a_missing_client_is_named_with_its_extra(
    sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.playbook.sinks.storages._is_there", lambda module: False)
    outcome = await sinks.tool.run({"storage": "kv", "driver": "redis"}, call())
    assert 'pip install "noetl-streams[kv]"' in str(outcome.error)
