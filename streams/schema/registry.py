"""Port of schema registries, and the adapters without a server.

The log stores Confluent's wire format forever, so an id in those bytes must always mean the
same schema. `file`, the default, pins ids in the repository (`avro_schemas/ids.yaml`);
`memory` is for tests; `registry_postgres` and `registry_external` are the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streams.errors import Inconsistent, Refused
from streams.schema.released import PinnedSchema, fingerprint, load_pins


class UnknownSchemaId(Inconsistent):
    """The schema id does not exist in this registry."""

    def __init__(self, schema_id: int, where: str) -> None:
        super().__init__(
            f"schema id {schema_id} is not in {where}: this process is older than the writer, "
            "or it uses another registry than the log's writers; "
            "upgrade it or correct serialization.schema_registry in the settings"
        )
        self.schema_id = schema_id


class SchemaNotPinned(Refused):
    """The schema has no id yet, and this registry does not assign any."""

    def __init__(self, subject: str, where: str) -> None:
        super().__init__(
            f"{subject}: its schema has no id in {where}; "
            "run `streams schemas release NAME` and commit what it writes"
        )
        self.subject = subject


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema, its id, and a subject it is known under."""

    schema_id: int
    subject: str
    version: int
    schema: str


class SchemaRegistry(Protocol):
    """Maps every schema to one id, and that id to the same schema forever.

    One schema has one id under all its subjects (`<topic>-value`), because the record is the
    same wherever it is read.
    """

    async def id_for(self, subject: str, schema: str) -> int:
        """Return the id of `schema` (Avro JSON), registering it if the backend does that.

        Raises:
            SchemaNotPinned: the backend does not register schemas, and does not have it.
            Refused: the backend rejects the schema.
            Unavailable: the backend is down.
        """
        ...

    async def schema(self, schema_id: int) -> str:
        """Return the Avro JSON behind `schema_id`.

        Raises:
            UnknownSchemaId: the id does not exist.
            Unavailable: the backend is down.
        """
        ...

    async def list(self) -> Sequence[RegisteredSchema]:
        """Return everything registered, by id and then subject."""
        ...


class FileRegistry:
    """Ids pinned in a folder that is released together with the code."""

    def __init__(self, folder: Path) -> None:
        self._where = str(folder / "ids.yaml")
        self._pins = load_pins(folder)
        self._by_fingerprint = {pin.fingerprint: pin for pin in self._pins}
        self._by_id = {pin.schema_id: pin for pin in self._pins}

    async def id_for(self, subject: str, schema: str) -> int:
        """Return the pinned id; new ones are pinned only by a release."""
        pin = self._by_fingerprint.get(fingerprint(schema))
        if pin is None:
            raise SchemaNotPinned(subject, self._where)
        return pin.schema_id

    async def schema(self, schema_id: int) -> str:
        """Return the released schema with that id."""
        pin = self._by_id.get(schema_id)
        if pin is None:
            raise UnknownSchemaId(schema_id, self._where)
        return pin.schema

    async def list(self) -> Sequence[RegisteredSchema]:
        """Return every released schema, with its name as subject."""
        return [_as_registered(pin) for pin in self._pins]


def _as_registered(pin: PinnedSchema) -> RegisteredSchema:
    return RegisteredSchema(pin.schema_id, pin.name, pin.version, pin.schema)


class MemoryRegistry:
    """Ids from 1, in memory, for tests."""

    def __init__(self) -> None:
        self._schemas: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self._subjects: dict[str, list[int]] = {}

    async def id_for(self, subject: str, schema: str) -> int:
        """Return the schema's id, assigning the next one if it is new."""
        schema_id = self._ids.setdefault(fingerprint(schema), len(self._schemas) + 1)
        self._schemas.setdefault(schema_id, schema)
        versions = self._subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    async def schema(self, schema_id: int) -> str:
        """Return the schema with that id."""
        if schema_id not in self._schemas:
            raise UnknownSchemaId(schema_id, "the registry in memory")
        return self._schemas[schema_id]

    async def list(self) -> Sequence[RegisteredSchema]:
        """Return every subject with its versions, in order of registration."""
        found = [
            RegisteredSchema(schema_id, subject, version, self._schemas[schema_id])
            for subject, ids in self._subjects.items()
            for version, schema_id in enumerate(ids, start=1)
        ]
        return sorted(found, key=lambda one: (one.schema_id, one.subject))
