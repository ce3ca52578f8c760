"""Schema registry in Postgres: ids are in the same database as the log.

Ids start at 1 while pinned ones start far above, so a process with the wrong backend finds no
schema instead of a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import asyncpg

from streams.errors import Refused, Unavailable
from streams.postgres import translated
from streams.schema.registry import RegisteredSchema, UnknownSchemaId
from streams.schema.released import canonical, fingerprint

# One schema's id under a subject, made when it is new.
_ID_FOR = "SELECT noetl.schema_id_for($1, $2, $3)"

# The schema behind an id.
_SCHEMA = "SELECT schema FROM noetl.schema WHERE schema_id = $1"

# Everything, for people.
_LIST = """
    SELECT schema_id, subject, version, schema
    FROM noetl.schema JOIN noetl.schema_subject USING (schema_id)
    ORDER BY schema_id, subject
"""


class DatabaseRegistry:
    """Schemas and ids in `noetl.schema`; give it a connection or a pool."""

    def __init__(self, database: asyncpg.Pool | asyncpg.Connection) -> None:
        self._database = database

    async def id_for(self, subject: str, schema: str) -> int:
        """Return the schema's id, assigning the next one if it is new."""
        with _translated():
            found = await self._database.fetchval(
                _ID_FOR, subject, fingerprint(schema), canonical(schema)
            )
        return int(found)

    async def schema(self, schema_id: int) -> str:
        """Return the schema stored under that id."""
        with _translated():
            found = await self._database.fetchval(_SCHEMA, schema_id)
        if found is None:
            raise UnknownSchemaId(schema_id, "table noetl.schema")
        return str(found)

    async def list(self) -> Sequence[RegisteredSchema]:
        """Return every subject with its versions."""
        with _translated():
            rows = await self._database.fetch(_LIST)
        return [RegisteredSchema(*row) for row in rows]


def _translated() -> AbstractContextManager[None]:
    return translated(Unavailable, "use the schema registry", refused=_refused)


def _refused(error: asyncpg.PostgresError) -> Refused:
    return Refused(f"schema registry in Postgres: {_advice(error)}")


def _advice(error: asyncpg.PostgresError) -> str:
    if isinstance(error, asyncpg.UndefinedTableError | asyncpg.UndefinedFunctionError):
        return f"{error}; run `streams migrate`"
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return f"{error}; use the role for its duty (append registers, read only reads)"
    return str(error)
