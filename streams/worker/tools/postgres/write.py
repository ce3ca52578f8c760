"""Execution of one statement for many rows: in one INSERT, or one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import asyncpg
import orjson

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.tools.postgres.insert import insert_of
from streams.worker.tools.postgres.pools import PooledDatabase
from streams.worker.tools.postgres.statement import Statement
from streams.worker.tools.postgres.values import as_text

Row = Mapping[str, Json]
Types = Sequence[tuple[str, bool]]
NOT_AT_ONCE = frozenset({"21000"})
"""A key occurs twice, which one upsert cannot handle."""


class MissingValue(BadConfig):
    """A row has no value for a placeholder."""

    def __init__(self, name: str, row: int) -> None:
        super().__init__(f"no value for the placeholder :{name} in 'params' or the row")
        self.row = row


async def write(
    database: PooledDatabase,
    connection: asyncpg.Connection,
    statement: Statement,
    rows: Sequence[Row],
    *,
    at_once: bool = True,
) -> int:
    """Run `statement` for every row, within the caller's transaction; return rows written.

    Raises:
        MissingValue: a row lacks a value.
        asyncpg.PostgresError: the database rejects them; with a code of `NOT_AT_ONCE`, the
            same rows may still be written one by one.
    """
    if not rows:
        return 0
    types = await database.types_of(connection, statement.sql())
    insert = insert_of(statement) if at_once and len(rows) > 1 else None
    if insert is None:
        return await _one_by_one(connection, statement, types, rows)
    sql = insert.many([name for name, _ in types])
    return affected(await connection.execute(sql, as_json(statement.parameters, types, rows)))


async def write_anyhow(
    database: PooledDatabase,
    connection: asyncpg.Connection,
    statement: Statement,
    rows: Sequence[Row],
) -> int:
    """Write rows at once if possible, else one by one."""
    try:
        async with connection.transaction():  # a savepoint, to retry within the transaction
            return await write(database, connection, statement, rows)
    except asyncpg.PostgresError as error:
        if error.sqlstate not in NOT_AT_ONCE:
            raise
    return await write(database, connection, statement, rows, at_once=False)


def as_json(names: Sequence[str], types: Types, rows: Sequence[Row]) -> str:
    """Return the rows as a JSON array of objects with only `names`.

    Raises:
        MissingValue: a row lacks a value.
    """
    wanted, size = set(names), len(names)
    arrays = [name for name, (_, is_array) in zip(names, types, strict=True) if is_array]
    sent = []
    for number, row in enumerate(rows):
        if not wanted <= row.keys():
            raise MissingValue(min(wanted - row.keys()), number)
        if arrays or len(row) != size or type(row) is not dict:
            row = {name: row[name] for name in names}  # noqa: PLW2901
            row.update({name: as_text(row[name], True) for name in arrays})
        sent.append(row)
    try:
        return orjson.dumps(sent).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates: Postgres validates them
        return json.dumps(sent, default=str)


def texts(names: Sequence[str], types: Types, row: Row, number: int = 0) -> list[str | None]:
    """Return the text of each parameter of a row, in the order of `names`.

    Raises:
        MissingValue: the row lacks a value.
    """
    try:
        return [
            as_text(row[name], is_array) for name, (_, is_array) in zip(names, types, strict=True)
        ]
    except KeyError as error:
        raise MissingValue(error.args[0], number) from None


async def _one_by_one(
    connection: asyncpg.Connection, statement: Statement, types: Types, rows: Sequence[Row]
) -> int:
    prepared = await connection.prepare(typed(statement.sql, types))
    count = 0
    for number, row in enumerate(rows):
        await prepared.fetch(*texts(statement.parameters, types, row, number))
        count += affected(prepared.get_statusmsg())
    return count


def typed(sql: Callable[[Sequence[str]], str], types: Types) -> str:
    """Return a statement whose parameters are text, cast to the required type."""
    return sql([f"(${n}::text)::{name}" for n, (name, _) in enumerate(types, start=1)])


def affected(status: str) -> int:
    """Return the row count of a status like `INSERT 0 5`."""
    last = status.rsplit(" ", 1)[-1]
    return int(last) if last.isdigit() else 0
