"""Releases: what is pinned stays pinned, and every disagreement is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from streams.resources import folder as project_folder
from streams.schema.registry import FileRegistry, SchemaNotPinned
from streams.schema.release import (
    FIRST_ID,
    Incompatible,
    NothingToRelease,
    State,
    check,
    release,
)
from streams.schema.released import BadSchemaFile, PinsDisagree, fingerprint, load_pins

V1 = {
    "type": "record",
    "name": "Event",
    "namespace": "noetl",
    "fields": [{"name": "id", "type": "long"}],
}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string", "default": ""}]}
BROKEN = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work(tmp_path, V1)
    return tmp_path


def work(folder: Path, schema: object, name: str = "Event") -> None:
    (folder / f"{name}.avsc").write_text(json.dumps(schema, indent=2))


def ids(folder: Path) -> dict[int, dict[str, object]]:
    loaded: dict[int, dict[str, object]] = yaml.safe_load((folder / "ids.yaml").read_text())
    return loaded


def test_the_first_release_is_version_1_with_the_first_id(folder: Path) -> None:
    made = release(folder, "Event")
    assert (made.schema_id, made.version) == (FIRST_ID, 1)
    assert load_pins(folder) == (made,)
    assert (folder / "released/Event.1.avsc").read_text() == (folder / "Event.avsc").read_text()


def test_a_second_release_gets_the_next_version_and_the_next_id(folder: Path) -> None:
    release(folder, "Event")
    work(folder, V2)
    made = release(folder, "Event")
    assert (made.schema_id, made.version) == (FIRST_ID + 1, 2)
    assert [pin.version for pin in load_pins(folder)] == [1, 2]


def test_two_records_share_one_sequence_of_ids(folder: Path) -> None:
    release(folder, "Event")
    work(folder, {**V1, "name": "Trigger"}, "Trigger")
    made = release(folder, "Trigger")
    assert (made.schema_id, made.version) == (FIRST_ID + 1, 1)


def test_a_dry_run_writes_nothing(folder: Path) -> None:
    assert release(folder, "Event", dry_run=True).schema_id == FIRST_ID
    assert not (folder / "ids.yaml").exists()
    assert load_pins(folder) == ()


def test_an_incompatible_schema_is_not_released_and_the_field_is_named(folder: Path) -> None:
    release(folder, "Event")
    work(folder, BROKEN)
    with pytest.raises(Incompatible, match=r"Event\.note: version 1 does not write this field"):
        release(folder, "Event")
    assert len(load_pins(folder)) == 1


def test_releasing_an_unchanged_schema_is_refused(folder: Path) -> None:
    release(folder, "Event")
    with pytest.raises(NothingToRelease, match="version 1"):
        release(folder, "Event")


def test_a_return_to_an_older_release_needs_no_new_id(folder: Path) -> None:
    release(folder, "Event")
    work(folder, V2)
    release(folder, "Event")
    work(folder, V1)
    assert check(folder)[0].state is State.CHANGED
    with pytest.raises(NothingToRelease, match="version 1"):
        release(folder, "Event")


def test_a_record_without_a_file_cannot_be_released(folder: Path) -> None:
    with pytest.raises(BadSchemaFile, match=r"Nothing\.avsc: does not exist"):
        release(folder, "Nothing")


def test_check_tells_new_released_changed_and_incompatible_apart(folder: Path) -> None:
    assert [one.state for one in check(folder)] == [State.NEW]
    release(folder, "Event")
    assert [one.state for one in check(folder)] == [State.RELEASED]
    work(folder, V2)
    assert [one.state for one in check(folder)] == [State.CHANGED]
    work(folder, BROKEN)
    assert [one.state for one in check(folder)] == [State.INCOMPATIBLE]


def test_check_compares_with_every_release_not_only_the_newest(folder: Path) -> None:
    """A field dropped in v2 and brought back with another type troubles only v1."""
    work(folder, {**V1, "fields": [*V1["fields"], {"name": "n", "type": "int", "default": 0}]})
    release(folder, "Event")
    work(folder, V1)
    release(folder, "Event")
    work(folder, {**V1, "fields": [*V1["fields"], {"name": "n", "type": "string", "default": ""}]})
    (verdict,) = check(folder)
    assert {(one.version, one.found.path) for one in verdict.breaks} == {(1, "Event.n")}


def test_a_released_file_that_was_edited_is_found(folder: Path) -> None:
    release(folder, "Event")
    (folder / "released/Event.1.avsc").write_text(json.dumps(V2))
    with pytest.raises(PinsDisagree, match=rf"Event\.1\.avsc: was changed after id {FIRST_ID}"):
        check(folder)


def test_a_released_file_that_was_only_reformatted_is_the_same(folder: Path) -> None:
    release(folder, "Event")
    (folder / "released/Event.1.avsc").write_text(json.dumps(V1, sort_keys=True))
    assert [one.state for one in check(folder)] == [State.RELEASED]


def test_a_missing_released_file_is_found(folder: Path) -> None:
    release(folder, "Event")
    (folder / "released/Event.1.avsc").unlink()
    with pytest.raises(PinsDisagree, match="is missing"):
        check(folder)


def test_a_released_file_without_an_id_is_found(folder: Path) -> None:
    release(folder, "Event")
    (folder / "released/Event.2.avsc").write_text(json.dumps(V2))
    with pytest.raises(PinsDisagree, match=r"Event\.2\.avsc: has no id"):
        check(folder)


def test_a_working_file_that_vanished_is_found(folder: Path) -> None:
    release(folder, "Event")
    (folder / "Event.avsc").unlink()
    with pytest.raises(PinsDisagree, match="is missing"):
        check(folder)


def test_a_file_that_holds_another_record_is_refused(folder: Path) -> None:
    work(folder, {**V1, "name": "Other"})
    with pytest.raises(BadSchemaFile, match=r"holds record noetl\.Other, not Event"):
        check(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2, "file": "released/Event.2.avsc"}, "is missing"),
        ({"fingerprint": "0" * 64}, "was changed"),
        ({"file": "../Event.avsc"}, "its file must be"),
        ({"name": "../x"}, "not a record name"),
        ({"version": 0}, "not a number from 1"),
        ({"extra": 1}, "needs exactly"),
    ],
)
def test_a_bad_entry_is_found(folder: Path, change: dict[str, object], words: str) -> None:
    release(folder, "Event")
    entry = {**ids(folder)[FIRST_ID], **change}
    (folder / "ids.yaml").write_text(yaml.safe_dump({FIRST_ID: entry}))
    with pytest.raises(PinsDisagree, match=words):
        load_pins(folder)


@pytest.mark.parametrize("schema_id", [0, -1, 2**31, "one", True])
def test_what_does_not_fit_the_wire_format_is_no_id(folder: Path, schema_id: object) -> None:
    release(folder, "Event")
    (folder / "ids.yaml").write_text(yaml.safe_dump({schema_id: ids(folder)[FIRST_ID]}))
    with pytest.raises(PinsDisagree, match="is not a schema id"):
        load_pins(folder)


def test_one_schema_under_two_ids_is_found(folder: Path) -> None:
    release(folder, "Event")
    entry = ids(folder)[FIRST_ID]
    second = {**entry, "version": 2, "file": "released/Event.2.avsc"}
    (folder / "released/Event.2.avsc").write_text(json.dumps(V1))
    (folder / "ids.yaml").write_text(yaml.safe_dump({FIRST_ID: entry, FIRST_ID + 1: second}))
    with pytest.raises(PinsDisagree, match="are the same schema"):
        load_pins(folder)


def test_two_branches_that_pinned_the_same_id_are_found_after_the_merge(folder: Path) -> None:
    release(folder, "Event")
    text = (folder / "ids.yaml").read_text()
    entry = text[text.index(str(FIRST_ID)) :]
    (folder / "ids.yaml").write_text(text + entry)
    with pytest.raises(PinsDisagree, match="same key"):
        load_pins(folder)


async def test_the_file_registry_pins_nothing_by_itself(folder: Path) -> None:
    release(folder, "Event")
    with pytest.raises(SchemaNotPinned, match="streams schemas release"):
        await FileRegistry(folder).id_for("noetl.events.execution-value", json.dumps(V2))
    assert len(load_pins(folder)) == 1


def test_a_default_is_part_of_the_fingerprint_and_whitespace_is_not() -> None:
    changed = {**V2, "fields": [*V1["fields"], {"name": "note", "type": "string", "default": "x"}]}
    assert fingerprint(json.dumps(V2)) != fingerprint(json.dumps(changed))
    assert fingerprint(json.dumps(V2)) == fingerprint(json.dumps(V2, indent=4, sort_keys=True))


def test_the_projects_own_schemas_keep_to_what_was_released() -> None:
    verdicts = check(project_folder("avro_schemas"))
    assert "Event" in {one.name for one in verdicts}
    assert [str(one) for verdict in verdicts for one in verdict.breaks] == []
