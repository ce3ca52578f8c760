"""Tables in a DuckDB file, behind a fence in the same file."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import duckdb

from streams.playbook.errors import BadSink
from streams.playbook.sink_rows import quoted, statement
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.place import below
from streams.worker.sinks.port import Around, Job, Reference, SinkRefused
from streams.worker.sinks.tables import reference, table_rows, text_of_json
from streams.worker.tools.duckdb import bound
from streams.worker.tools.pg_statement import statements

_ALONE = "SET enable_external_access = false"  # a statement reaches no file but its own
_MAKE = """
CREATE TABLE IF NOT EXISTS noetl_fence (
  deployment TEXT, name TEXT, created_at TIMESTAMPTZ DEFAULT now(), PRIMARY KEY (deployment, name))
"""
_TAKE = "INSERT INTO noetl_fence (deployment, name) VALUES (?, ?) ON CONFLICT DO NOTHING"


class DuckdbDriver:
    """Writes rows and a fence in one transaction: an attempt that comes again writes nothing.

    `spec.database` (or `path`) is a file below the folder of sinks; one that the credential
    names may be anywhere. One process at a time can have a file open, so writers take turns.
    """

    def __init__(self, around: Around) -> None:
        self._folder = around.folder
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def write(self, job: Job) -> Reference:
        """Write the rows, or run the statement."""
        place = self._place(job)
        async with self._turns[str(place)]:
            try:
                return await asyncio.to_thread(_write, place, job)
            except BadSink as error:
                raise BadConfig(str(error)) from error
            except duckdb.IOException as error:
                if "lock" in str(error):
                    raise TargetUnavailable(f"{place.name}: another process has it open") from error
                raise SinkRefused("io", str(error)) from error
            except duckdb.Error as error:
                code = type(error).__name__.removesuffix("Exception").lower()
                raise SinkRefused(code, str(error)) from error

    async def close(self) -> None:
        """Hold nothing between writes."""

    def _place(self, job: Job) -> Path:
        named = job.spec.get("database") or job.spec.get("path")
        if named is not None:
            return below(self._folder, str(named))
        known = job.secret.get("database") or job.secret.get("path") or job.secret.get("dsn")
        if not known:
            raise BadConfig("a duckdb sink needs a file: spec: {database: …}, or a credential")
        return Path(known)


def _write(place: Path, job: Job) -> Reference:
    place.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(place), config={"threads": 1}) as session:
        session.execute(_ALONE)
        session.execute(_MAKE)
        session.begin()
        try:
            [count] = session.execute(_TAKE, [job.deployment, job.name]).fetchone() or (0,)
            told = _do(session, job, is_first=bool(count))
            session.commit()
        except BaseException:
            session.rollback()
            raise
    return told


def _do(session: duckdb.DuckDBPyConnection, job: Job, *, is_first: bool) -> Reference:
    if job.statement is not None:
        for command in statements(job.statement) if is_first else ():
            session.execute(*bound(command, dict(job.params)))
        return reference(job, None)
    rows = table_rows(job)
    if not is_first:
        return reference(job, rows)
    if job.mode == "overwrite":
        session.execute(f"DELETE FROM {quoted(rows.table)}")  # noqa: S608 - a name, quoted
    if rows.rows:
        mode = "append" if job.mode == "overwrite" else job.mode
        command = statements(statement(rows.table, mode, job.key, rows.columns))[0]
        order = [rows.columns[int(place)] for place in _order(command.parameters, rows.columns)]
        sql = command.sql([f"${n}" for n in range(1, len(order) + 1)])
        made = [[text_of_json(row.get(name)) for name in order] for row in rows.rows]
        session.executemany(sql, made)
    return reference(job, rows)


def _order(parameters: tuple[str, ...], columns: tuple[str, ...]) -> list[int]:
    """Return for each parameter of the statement which column it stands for."""
    known = {name: place for place, name in enumerate(columns)}
    return [
        known[name] if name in known else int(name.removeprefix("column_")) for name in parameters
    ]
