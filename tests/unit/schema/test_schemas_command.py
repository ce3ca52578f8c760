"""`streams schemas` as a user meets it: output, exit codes, one line for each error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streams.cli import main

FIELD = {"name": "id", "type": "long"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work(tmp_path, [FIELD])
    return tmp_path


def work(folder: Path, fields: list[dict[str, Any]]) -> None:
    schema = {"type": "record", "name": "Event", "namespace": "noetl", "fields": fields}
    (folder / "Event.avsc").write_text(json.dumps(schema))


@pytest.fixture
def schemas(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> tuple[int, str, str]:
        command, *rest = arguments
        argv = ["streams", "schemas", command, "--folder", str(folder), *rest]
        monkeypatch.setattr("sys.argv", argv)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return code, out, err

    return run


def test_a_new_schema_is_checked_released_and_listed(schemas: Any) -> None:
    code, out, _ = schemas("check")
    assert (code, out) == (0, "Event: new, never released\n")
    code, out, _ = schemas("release", "Event")
    assert (code, out) == (0, "Event version 1 is now released/Event.1.avsc with id 100001\n")
    assert schemas("list")[1] == "100001  Event  version 1  released/Event.1.avsc\n"
    assert schemas("check")[1] == "Event: released (newest release: 1)\n"


def test_a_dry_run_of_a_release_writes_nothing(schemas: Any, folder: Path) -> None:
    code, out, _ = schemas("release", "Event", "--dry-run", "--json")
    assert code == 0
    assert json.loads(out)["written"] is False
    assert sorted(path.name for path in folder.iterdir()) == ["Event.avsc"]


def test_a_compatible_change_is_named_and_is_no_failure(schemas: Any, folder: Path) -> None:
    schemas("release", "Event")
    work(folder, [FIELD, {"name": "note", "type": "string", "default": ""}])
    code, out, _ = schemas("check")
    assert (code, out) == (0, "Event: changed, compatible, not released (newest release: 1)\n")


def test_a_break_names_the_field_and_fails(schemas: Any, folder: Path) -> None:
    schemas("release", "Event")
    work(folder, [FIELD, {"name": "note", "type": "string"}])
    code, out, err = schemas("check")
    assert code == 3
    assert "Event.note: version 1 does not write this field and it has no default" in out
    assert err.startswith("error: Event: incompatible")
    assert err.count("\n") == 1


def test_json_tells_the_same_and_is_one_object(schemas: Any, folder: Path) -> None:
    schemas("release", "Event")
    work(folder, [{"name": "id", "type": "string"}])
    code, out, _ = schemas("check", "--json")
    report = json.loads(out)
    assert code == 3
    assert report["compatible"] is False
    (schema,) = report["schemas"]
    assert {(one["direction"], one["path"], one["version"]) for one in schema["breaks"]} == {
        ("backward", "Event.id", 1),
        ("forward", "Event.id", 1),
    }


def test_an_edited_release_stops_the_check(schemas: Any, folder: Path) -> None:
    schemas("release", "Event")
    released = folder / "released/Event.1.avsc"
    released.write_text(released.read_text().replace("long", "int"))
    code, _, err = schemas("check")
    assert code == 5
    assert "was changed after id 100001 was pinned" in err


def test_publishing_nothing_is_refused_without_asking_a_registry(schemas: Any) -> None:
    code, _, err = schemas("publish", "--url", "http://127.0.0.1:9")
    assert code == 3
    assert "streams schemas release" in err


def test_a_registry_that_is_down_is_one_clear_line(schemas: Any, unused_tcp_port: int) -> None:
    schemas("release", "Event")
    code, out, err = schemas("publish", "--url", f"http://127.0.0.1:{unused_tcp_port}")
    assert (code, out) == (4, "")
    assert "check that it runs" in err
    assert err.count("\n") == 1
