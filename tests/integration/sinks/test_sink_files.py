"""Sinks to the log and to files, and those whose driver is not there."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from tests.sinks import Sinks, call, kind


def killed(*_: object) -> None:
    raise RuntimeError("killed")


def files_in(folder: Path) -> list[str]:
    return [str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()]


async def test_the_event_log_has_the_result_anyway(sinks: Sinks) -> None:
    told = await sinks.twice({"storage": "event_log"})
    assert told == {"store": "event_log", "key": "execution/7/step/load", "range": ""}
    told = await sinks.twice({"data": {"a": "{{ result }}"}}, result=5)
    assert told["data"] == {"a": 5}
    large = await sinks.once({"data": "{{ result }}"}, result="x" * 20_000)
    assert kind(large) == "event_log.config"


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
async def test_a_file_is_written_in_every_format(sinks: Sinks, tmp_path: Path, format: str) -> None:
    rows = [{"id": 1, "v": "1e5"}, {"id": 2, "v": "None"}]
    block = {"storage": "file", "format": format, "data": "{{ result }}"}
    told = await sinks.twice(block, result=rows)
    content = (tmp_path / told["key"]).read_bytes()
    if format == "json":
        assert orjson.loads(content) == rows
    elif format == "csv":
        found = list(csv.DictReader(io.StringIO(content.decode())))
        assert found == [{"id": "1", "v": "1e5"}, {"id": "2", "v": "None"}]
    else:
        assert pq.read_table(io.BytesIO(content)).to_pylist() == rows
    assert [told["key"]] == files_in(tmp_path)


async def test_a_list_goes_to_several_files(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "spec": {"path": "a/b.json"}, "chunk_size": 2, "data": [1, 2, 3]}
    told = await sinks.twice(block)
    assert told == {"store": "file", "key": "a/b.json", "range": "parts:2"}
    found = {one.name: one.read_text() for one in (tmp_path / "a").iterdir()}
    assert found == {"b-00000.json": "[1,2]", "b-00001.json": "[3]"}


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


async def test_a_missing_client_is_named_with_its_extra(
    sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.playbook.storages._is_there", lambda module: False)
    outcome = await sinks.tool.run({"storage": "kv", "driver": "redis"}, call())
    assert 'pip install "noetl-streams[kv]"' in str(outcome.error)
