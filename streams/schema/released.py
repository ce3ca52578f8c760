"""Released schemas and ids, pinned in `avro_schemas/`.

Layout of the folder:

    Event.avsc              the working schema of record `Event`
    released/Event.1.avsc   version 1 as it was released, never edited again
    ids.yaml                id -> name, version, file, fingerprint

An id is written into every stored record, so a released file that changed would silently
change what the log means: loading compares each file with its pinned fingerprint.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from streams.errors import Inconsistent, Refused
from streams.schema.avro_model import AvroRecord
from streams.schema.avro_parse import BadSchema, parse

IDS_FILE = "ids.yaml"
RELEASED_FOLDER = "released"
_KEYS = {"name", "version", "file", "fingerprint"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MAX_ID = 2**31 - 1


class BadSchemaFile(Refused):
    """A schema file cannot be read as Avro JSON."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}; correct the file")
        self.path = path


class PinsDisagree(Inconsistent):
    """`ids.yaml` and the released files do not describe the same schemas."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path}: {why}; stored records depend on it: restore the released state from git"
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class PinnedSchema:
    """One released version of a record and its permanent id."""

    schema_id: int
    name: str
    version: int
    file: str
    fingerprint: str
    schema: str


def canonical(schema: str) -> str:
    """Return the canonical text of a schema for registries: sorted and compact.

    Some registries distinguish schemas by their text, so that reordered keys would get a
    second id.
    """
    return orjson.dumps(orjson.loads(schema), option=orjson.OPT_SORT_KEYS).decode()


def fingerprint(schema: str) -> str:
    """Return the SHA-256 of a schema, ignoring only whitespace and the order of keys.

    Avro's own canonical form drops defaults, aliases and logical types, which change what
    a reader sees; two schemas that differ in those must not share an id.
    """
    return hashlib.sha256(canonical(schema).encode()).hexdigest()


def read_schema(path: Path) -> str:
    """Return the text of one .avsc file, which must be an Avro record."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSchemaFile(path, f"cannot be read ({error})") from error
    try:
        root = parse(text).root
    except BadSchema as error:
        raise BadSchemaFile(path, str(error)) from error
    if not isinstance(root, AvroRecord):
        raise BadSchemaFile(path, "is not an Avro record")
    return text


def load_pins(folder: Path) -> tuple[PinnedSchema, ...]:
    """Return every released schema by ascending id, checked against its fingerprint.

    Raises:
        PinsDisagree: an entry, a file or a fingerprint is inconsistent.
    """
    ids_file = folder / IDS_FILE
    if not ids_file.exists():
        return ()
    try:
        entries = yaml.load(ids_file.read_text("utf-8"), _UniqueKeys) or {}  # noqa: S506
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PinsDisagree(ids_file, f"cannot be read ({error})") from error
    if not isinstance(entries, dict):
        raise PinsDisagree(ids_file, "is not a mapping from id to schema")
    pins = tuple(
        sorted(
            (_load_pin(folder, schema_id, entry) for schema_id, entry in entries.items()),
            key=lambda pin: pin.schema_id,
        )
    )
    _check_together(ids_file, folder, pins)
    return pins


def newest(pins: tuple[PinnedSchema, ...], name: str) -> PinnedSchema | None:
    """Return the newest release of `name`, or None when there is none."""
    return max((pin for pin in pins if pin.name == name), key=lambda pin: pin.version, default=None)


def _load_pin(folder: Path, schema_id: object, entry: object) -> PinnedSchema:
    ids_file = folder / IDS_FILE
    if (
        not isinstance(schema_id, int)
        or isinstance(schema_id, bool)
        or not 0 < schema_id <= _MAX_ID
    ):
        raise PinsDisagree(ids_file, f"{schema_id!r} is not a schema id (1 to {_MAX_ID})")
    if not isinstance(entry, Mapping) or set(entry) != _KEYS:
        raise PinsDisagree(ids_file, f"id {schema_id} needs exactly {', '.join(sorted(_KEYS))}")
    name, version = entry["name"], entry["version"]
    if not isinstance(name, str) or not _NAME.match(name):
        raise PinsDisagree(ids_file, f"id {schema_id}: {name!r} is not a record name")
    if not isinstance(version, int) or version < 1:
        raise PinsDisagree(ids_file, f"id {schema_id}: version {version!r} is not a number from 1")
    expected_file = released_file(name, version)
    if entry["file"] != expected_file:
        raise PinsDisagree(ids_file, f"id {schema_id}: its file must be {expected_file}")
    path = folder / expected_file
    if not path.exists():
        raise PinsDisagree(path, f"is missing, although id {schema_id} is pinned to it")
    schema = read_schema(path)
    if fingerprint(schema) != entry["fingerprint"]:
        raise PinsDisagree(path, f"was changed after id {schema_id} was pinned to it")
    return PinnedSchema(schema_id, name, version, expected_file, fingerprint(schema), schema)


def released_file(name: str, version: int) -> str:
    """Return the path of a released version, relative to `avro_schemas/`."""
    return f"{RELEASED_FOLDER}/{name}.{version}.avsc"


def _check_together(ids_file: Path, folder: Path, pins: tuple[PinnedSchema, ...]) -> None:
    """Check across entries: gaps, schemas pinned twice, files without an id."""
    versions: dict[str, list[int]] = {}
    ids: dict[str, int] = {}
    for pin in pins:
        versions.setdefault(pin.name, []).append(pin.version)
        if pin.fingerprint in ids:
            twice = f"ids {ids[pin.fingerprint]} and {pin.schema_id} are the same schema"
            raise PinsDisagree(ids_file, twice)
        ids[pin.fingerprint] = pin.schema_id
    for name, found in versions.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            raise PinsDisagree(ids_file, f"{name} has versions {found}, not 1 to {len(found)}")
    pinned = {folder / pin.file for pin in pins}
    for path in sorted((folder / RELEASED_FOLDER).glob("*.avsc")):
        if path not in pinned:
            raise PinsDisagree(path, f"has no id in {IDS_FILE}")


class _UniqueKeys(yaml.SafeLoader):
    """Rejects duplicate keys; YAML would take the last, hiding a merge mistake."""


def _unique_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    pairs = [
        (loader.construct_object(key, deep=True), loader.construct_object(value, deep=True))
        for key, value in node.value
    ]
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise yaml.constructor.ConstructorError(
            None, None, "two entries have the same key", node.start_mark
        )
    return mapping


_UniqueKeys.add_constructor("tag:yaml.org,2002:map", _unique_mapping)
