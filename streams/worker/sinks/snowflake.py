"""Snowflake tables."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import snowflake.connector
from snowflake.connector.cursor import SnowflakeCursor
from snowflake.connector.errors import (
    DatabaseError,
    Error,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)

from streams.playbook.sinks.rows import QUOTED
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused
from streams.worker.sinks.tables import (
    TableRows,
    groups,
    merge,
    reference,
    table_rows,
    text_of_json,
)
from streams.worker.tools.postgres.statement import statements

LOGIN = (
    *("account", "user", "password", "token", "authenticator", "role", "warehouse", "host"),
    *("database", "schema"),
)
"""Fields of a credential that a connection takes."""
_TABLE = re.compile(r"[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*){0,2}")


class SnowflakeDriver:
    """Writes in one transaction, without a fence: with mode append a retried attempt adds its
    rows again; the other modes are idempotent.
    """

    def __init__(self, around: SinkEnvironment) -> None:
        pass

    async def write(self, job: SinkJob) -> SinkReference:
        """Write the rows, or run the statement."""
        rows = None if job.statement is not None else table_rows(job)
        try:
            await asyncio.to_thread(_write, job, rows)
        except ProgrammingError as error:
            raise SinkRefused("sql", str(error)) from error
        except (OperationalError, InterfaceError) as error:
            raise TargetUnavailable(f"snowflake: {error}; retrying") from error
        except DatabaseError as error:
            raise SinkRefused("refused", str(error)) from error
        except Error as error:
            raise SinkRefused("client", str(error)) from error
        return reference(job, rows)

    async def close(self) -> None:
        """Do nothing: no connection stays open."""


def _write(job: SinkJob, rows: TableRows | None) -> None:
    login = {name: value for name in LOGIN if (value := job.setting(name, f"sf_{name}"))}
    if "account" not in login:
        raise BadConfig("a snowflake sink needs `auth` whose credential has account, user …")
    with snowflake.connector.connect(**login, login_timeout=20, autocommit=False) as session:
        cursor = session.cursor()
        try:
            _do(cursor, job, rows)
            session.commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            cursor.close()


def _do(cursor: SnowflakeCursor, job: SinkJob, rows: TableRows | None) -> None:
    if rows is None:
        for command in statements(job.statement or ""):
            names = command.parameters
            if absent := [name for name in names if name not in job.params]:
                raise BadConfig(f"no value for the placeholder :{absent[0]} in 'params'")
            bound = {name: text_of_json(job.params[name]) for name in names}
            if bound:  # the client then reads a % as a placeholder
                command = replace(command, parts=tuple(map(_doubled, command.parts)))  # noqa: PLW2901
            cursor.execute(command.sql([f"%({name})s" for name in names]), bound or None)
        return
    if not _TABLE.fullmatch(rows.table):
        raise BadConfig(f"{rows.table!r} is not a valid table name; write database.schema.table")
    if job.mode == "overwrite":
        cursor.execute(f"DELETE FROM {rows.table}")  # noqa: S608 - the author's own name
    for some in groups(job, rows):
        sql = _sql(job, some)
        for row in some.rows:
            cursor.execute(sql, [text_of_json(row.get(name)) for name in some.columns])


def _sql(job: SinkJob, rows: TableRows) -> str:
    """Return the statement that writes one of the rows."""
    if job.mode in ("append", "overwrite"):
        into, marks = ", ".join(map(_quote, rows.columns)), ", ".join(["%s"] * len(rows.columns))
        return f"INSERT INTO {rows.table} ({into}) VALUES ({marks})"  # noqa: S608
    source = ", ".join(f"%s AS {_quote(name)}" for name in rows.columns)
    return merge(rows, job.key, f"SELECT {source}", _quote, inserts=job.mode == "upsert")


def _quote(name: str) -> str:
    """Return a column's name for a statement with parameters; plain names become upper case."""
    if QUOTED.fullmatch(name):
        return _doubled(name)
    folded = name.upper() if name.isidentifier() else name
    doubled = folded.replace('"', '""')
    return _doubled(f'"{doubled}"')


def _doubled(text: str) -> str:
    return text.replace("%", "%%")
