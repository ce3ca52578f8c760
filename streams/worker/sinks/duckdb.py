"""Tables in a DuckDB file, behind a fence in the same file."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import duckdb

from streams.events.model import Json
from streams.playbook.errors import BadSink
from streams.playbook.sinks.rows import quote_table
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.duckdb_rows import write
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused
from streams.worker.sinks.sink_folder import below
from streams.worker.sinks.tables import TableRows, groups, reference, table_rows, text_of_json
from streams.worker.tools.duckdb import bound
from streams.worker.tools.postgres.statement import statements

_ALONE = "SET enable_external_access = false"  # a statement may access no other file
_MAKE = """
CREATE TABLE IF NOT EXISTS noetl_fence (
  deployment TEXT, name TEXT, created_at TIMESTAMPTZ DEFAULT now(), PRIMARY KEY (deployment, name));
ALTER TABLE noetl_fence ADD COLUMN IF NOT EXISTS row_count BIGINT
"""
_FIND = "SELECT row_count FROM noetl_fence WHERE (deployment, name) = (?, ?)"
_KEEP = "INSERT INTO noetl_fence (deployment, name, row_count) VALUES (?, ?, ?)"
_LOCKED = "Could not set lock"


class DuckdbDriver:
    """Writes rows and a fence in one transaction: a retried attempt writes nothing.

    `spec.database` (or `path`) is a file below the folder of sinks; one that the credential
    names may be anywhere. Only one process can have a file open, so writers take turns.
    """

    def __init__(self, around: SinkEnvironment) -> None:
        self._folder = around.folder
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def write(self, job: SinkJob) -> SinkReference:
        """Write the rows, or run the statement."""
        place = self._place(job)
        async with self._turns[str(place)]:
            try:
                return await asyncio.to_thread(_write, place, job)
            except BadSink as error:
                raise BadConfig(str(error)) from error
            except duckdb.IOException as error:
                if _LOCKED in str(error):
                    raise TargetUnavailable(f"{place.name}: another process has it open") from error
                raise SinkRefused("io", str(error)) from error
            except OSError as error:
                why = f"{place.name}: {error.strerror or error}"
                raise SinkRefused("os", why) from error
            except duckdb.Error as error:
                code = type(error).__name__.removesuffix("Exception").lower()
                raise SinkRefused(code, str(error)) from error

    async def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _place(self, job: SinkJob) -> Path:
        named = job.spec.get("database") or job.spec.get("path")
        if named is not None:
            return below(self._folder, str(named))
        known = job.secret.get("database") or job.secret.get("path") or job.secret.get("dsn")
        if not known:
            raise BadConfig("a duckdb sink needs a file: spec: {database: …}, or a credential")
        return Path(known)


def _write(place: Path, job: SinkJob) -> SinkReference:
    rows = None if job.statement is not None else table_rows(job)
    name = [job.deployment, job.name]
    place.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(place), config={"threads": 1}) as session:
        session.execute(_ALONE)
        session.execute(_MAKE)
        session.begin()
        try:
            if (found := session.execute(_FIND, name).fetchone()) is None:
                found = (_do(session, job, rows),)
                session.execute(_KEEP, [*name, *found])
            session.commit()
        except BaseException:
            session.rollback()
            raise
    return reference(job, rows, *found)


def _do(session: duckdb.DuckDBPyConnection, job: SinkJob, rows: TableRows | None) -> int | None:
    """Write, and return how many rows an update matched."""
    if rows is None:
        params: dict[str, Json] = {name: text_of_json(value) for name, value in job.params.items()}
        for command in statements(job.statement or ""):
            session.execute(*bound(command, params))
        return None
    if job.mode == "overwrite":
        session.execute(f"DELETE FROM {quote_table(rows.table)}")  # noqa: S608 - a name, quoted
    mode = "append" if job.mode == "overwrite" else job.mode
    count = sum(write(session, some, mode, job.key) for some in groups(job, rows))
    return count if mode == "update" else None
