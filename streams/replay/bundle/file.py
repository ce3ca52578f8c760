"""A bundle opened for reading: its manifest, schemas, and where its events are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from streams.errors import Refused
from streams.events.codec import Codec, event_schema
from streams.replay.bundle.archive import EntryPlace, entries, whole
from streams.replay.bundle.errors import DamagedBundle, NotABundle
from streams.replay.bundle.manifest import (
    EVENTS,
    MANIFEST,
    SCHEMAS,
    BundledExecution,
    Manifest,
    manifest_of,
    schema_name,
)
from streams.schema.registry import RegisteredSchema, SchemaNotPinned, UnknownSchemaId
from streams.schema.released import fingerprint

MAX_MANIFEST_BYTES = 64 << 20
NO_SCHEMA_ID = 0
"""An id that no schema has."""


class Segment(NamedTuple):
    """An entry with events of one execution."""

    first_seq: int
    place: EntryPlace


class BundleFile(NamedTuple):
    """An open bundle. Only headers, manifest and schemas have been read."""

    name: str
    file: BinaryIO
    manifest: Manifest
    schemas: Mapping[int, str]
    segments: Mapping[int, Sequence[Segment]]
    """By execution, in order."""

    def execution(self, execution_id: int) -> BundledExecution | None:
        """Return an execution of the manifest."""
        found = self.manifest.executions
        return next((one for one in found if one.execution_id == execution_id), None)

    def codec(self) -> Codec:
        """Return a codec that decodes the events with the schemas of the bundle."""
        schema = event_schema()
        own = fingerprint(schema)
        ids = (key for key, text in self.schemas.items() if fingerprint(text) == own)
        return Codec(next(ids, NO_SCHEMA_ID), schema, BundleRegistry(self))


class BundleRegistry:
    """The schemas of a bundle, as a registry; it registers nothing."""

    def __init__(self, bundle: BundleFile) -> None:
        self._where, self._schemas = bundle.name, bundle.schemas

    async def id_for(self, subject: str, schema: str) -> int:
        """Return the id of a schema."""
        for schema_id, text in self._schemas.items():
            if fingerprint(text) == fingerprint(schema):
                return schema_id
        raise SchemaNotPinned(subject, self._where)

    async def schema(self, schema_id: int) -> str:
        """Return the schema with that id."""
        if schema_id not in self._schemas:
            raise UnknownSchemaId(schema_id, self._where)
        return self._schemas[schema_id]

    async def list(self) -> Sequence[RegisteredSchema]:
        """Return every schema."""
        return [
            RegisteredSchema(schema_id, "noetl.Event", schema_id, text)
            for schema_id, text in sorted(self._schemas.items())
        ]


@contextmanager
def open_bundle(path: Path) -> Iterator[BundleFile]:
    """Open a bundle.

    Raises:
        Refused: the file cannot be read.
        NotABundle, NewerBundle: it is something else, or too new.
        DamagedBundle: its headers or its manifest are not what export wrote.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}; give a bundle's file") from error
    with file:
        yield bundle_in(file, str(path))


def bundle_in(file: BinaryIO, name: str) -> BundleFile:
    """Return the bundle in an open file.

    Raises:
        NotABundle, NewerBundle, DamagedBundle: as for `open_bundle`.
    """
    places = entries(file, name, MANIFEST)
    first = next(places, None)
    if first is None or first.name != MANIFEST or first.size > MAX_MANIFEST_BYTES:
        raise NotABundle(name, f"its first entry is not {MANIFEST}")
    manifest = manifest_of(whole(file, first), name)
    schemas: dict[int, str] = {}
    segments: dict[int, list[Segment]] = {}
    for place in places:
        if place.name.startswith(SCHEMAS):
            schema_id = _number(place, place.name.removeprefix(SCHEMAS).removesuffix(".avsc"))
            schemas[schema_id] = _text(whole(file, place), place)
        elif place.name.startswith(EVENTS):
            execution_id, _, rest = place.name.removeprefix(EVENTS).partition("/")
            first_seq = _number(place, rest.removesuffix(".events"))
            found = segments.setdefault(_number(place, execution_id), [])
            found.append(Segment(first_seq, place))
        else:
            break  # payloads and digests follow
    for schema_id in manifest.schema_ids:
        if schema_id not in schemas:
            raise DamagedBundle(schema_name(schema_id), "the manifest has it, and the file has not")
    return BundleFile(name, file, manifest, schemas, segments)


def _number(place: EntryPlace, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise DamagedBundle(place.name, "its name has no number where one belongs")
    return int(text)


def _text(data: bytes, place: EntryPlace) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DamagedBundle(place.name, "it is not text") from error
