"""Checks of the working schemas against every release, and new releases."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml

from streams.errors import Refused
from streams.schema.avro_model import AvroRecord
from streams.schema.avro_parse import parse
from streams.schema.compatibility import Break, breaks
from streams.schema.released import (
    IDS_FILE,
    BadSchemaFile,
    PinnedSchema,
    PinsDisagree,
    fingerprint,
    load_pins,
    newest,
    read_schema,
    released_file,
)

# Ids start high so that a shared registry is unlikely to have assigned them:
# `schemas publish` can only move a log to where its ids are free.
FIRST_ID = 100_001

_HEADER = """\
# Which schema an id in a stored record means, for ever. Written by `streams schemas release`;
# released entries are never edited.
"""


class State(StrEnum):
    """State of a working schema relative to its releases."""

    RELEASED = "released"
    CHANGED = "changed, compatible, not released"
    NEW = "new, never released"
    INCOMPATIBLE = "incompatible"


@dataclass(frozen=True, slots=True)
class ReleaseBreak:
    """A break of compatibility with one released version."""

    version: int
    found: Break

    def __str__(self) -> str:
        return str(self.found)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `schemas check` reports for one record."""

    name: str
    state: State
    newest: PinnedSchema | None
    breaks: tuple[ReleaseBreak, ...] = ()


class Incompatible(Refused):
    """A schema is not compatible with a release."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        lines = [str(one) for verdict in verdicts for one in verdict.breaks]
        super().__init__(
            "; ".join(dict.fromkeys(lines))
            + ". Records are kept for ever, so this cannot be released"
        )
        self.verdicts = tuple(verdicts)


class NothingToRelease(Refused):
    """The working schema is a released one already."""


def check(folder: Path) -> tuple[Verdict, ...]:
    """Check every working schema in `folder` against all releases of its record.

    Raises:
        PinsDisagree: ids and released files are inconsistent.
        BadSchemaFile: a working schema is not valid Avro.
    """
    pins = load_pins(folder)
    names = sorted(path.stem for path in folder.glob("*.avsc"))
    if not names and not pins:
        raise BadSchemaFile(folder, "has no .avsc file; pass the folder of the schemas")
    for pin in pins:
        if pin.name not in names:
            raise PinsDisagree(
                folder / f"{pin.name}.avsc",
                f"is missing, although id {pin.schema_id} is its release",
            )
    return tuple(_check_record(folder, name, pins) for name in names)


def release(folder: Path, name: str, *, dry_run: bool = False) -> PinnedSchema:
    """Pin the working schema of `name` as its next version, under a new id.

    Raises:
        Incompatible: it breaks compatibility with a release.
        NothingToRelease: it is the newest release.
    """
    pins = load_pins(folder)
    verdict = _check_record(folder, name, pins)
    if verdict.state is State.INCOMPATIBLE:
        raise Incompatible([verdict])
    schema = read_schema(folder / f"{name}.avsc")
    for pin in pins:
        if pin.fingerprint == fingerprint(schema):
            raise NothingToRelease(
                f"{name}.avsc is released already: version {pin.version}, id {pin.schema_id}; "
                "change the file first"
            )
    version = verdict.newest.version + 1 if verdict.newest else 1
    schema_id = max((pin.schema_id for pin in pins), default=FIRST_ID - 1) + 1
    file = released_file(name, version)
    made = PinnedSchema(schema_id, name, version, file, fingerprint(schema), schema)
    if not dry_run:
        _write(folder, made, pins)
    return made


def _check_record(folder: Path, name: str, pins: tuple[PinnedSchema, ...]) -> Verdict:
    path = folder / f"{name}.avsc"
    if not path.exists():
        raise BadSchemaFile(path, "does not exist")
    schema = read_schema(path)
    root = parse(schema).root
    if not isinstance(root, AvroRecord) or root.name.rpartition(".")[2] != name:
        raise BadSchemaFile(path, f"holds record {getattr(root, 'name', '')}, not {name}")
    latest = newest(pins, name)
    if latest is None:
        return Verdict(name, State.NEW, None)
    if fingerprint(schema) == latest.fingerprint:
        return Verdict(name, State.RELEASED, latest)
    found = tuple(
        ReleaseBreak(pin.version, one)
        for pin in pins
        if pin.name == name
        for one in breaks(schema, pin.schema, old_name=f"version {pin.version}")
    )
    return Verdict(name, State.INCOMPATIBLE if found else State.CHANGED, latest, found)


def _write(folder: Path, made: PinnedSchema, pins: tuple[PinnedSchema, ...]) -> None:
    """Write the released file, then the ids: an id without its file would stop every reader."""
    target = folder / made.file
    target.parent.mkdir(exist_ok=True)
    _replace(target, made.schema)
    entries = {
        pin.schema_id: {
            "name": pin.name,
            "version": pin.version,
            "file": pin.file,
            "fingerprint": pin.fingerprint,
        }
        for pin in (*pins, made)
    }
    _replace(folder / IDS_FILE, _HEADER + yaml.safe_dump(entries, sort_keys=False))


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, "utf-8")
    os.replace(draft, path)
