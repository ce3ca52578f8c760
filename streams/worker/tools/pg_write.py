"""Many rows through one statement: by COPY, by one INSERT over arrays, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import asyncpg

from streams.worker.errors import BadConfig
from streams.worker.tools.pg_insert import Copy, Insert, insert_of
from streams.worker.tools.pg_pools import Database
from streams.worker.tools.pg_statement import Statement
from streams.worker.tools.pg_values import as_text, copy_lines

Row = Mapping[str, Any]
Types = Sequence[tuple[str, bool]]
# A view or row security, which COPY cannot do; the same key twice, which one upsert cannot.
_NOT_AT_ONCE = frozenset({"42809", "0A000", "21000"})
COPY_FROM = 8
"""With fewer rows an INSERT is as fast, and takes one round trip less."""


class MissingValue(BadConfig):
    """A row has no value for a placeholder."""

    def __init__(self, name: str, row: int) -> None:
        super().__init__(f"no value for the placeholder :{name} in 'params' or the row")
        self.row = row


async def write(
    database: Database, connection: asyncpg.Connection, statement: Statement, rows: Sequence[Row]
) -> int:
    """Run `statement` for every row, within the caller's transaction; return rows written.

    Raises:
        MissingValue: a row lacks a value.
        asyncpg.PostgresError: the database refuses.
    """
    if not rows:
        return 0
    sql = statement.sql()
    types = await database.types_of(connection, sql)
    insert = insert_of(statement)
    if insert is None or len(rows) == 1:
        return await _one_by_one(connection, statement, types, rows)
    try:
        async with connection.transaction():  # a savepoint: what cannot be done at once may follow
            if insert.copy is not None and len(rows) >= COPY_FROM:
                return await _copy(connection, statement, insert.copy, types, rows)
            return await _at_once(connection, statement, insert, types, rows)
    except asyncpg.PostgresError as error:
        if error.sqlstate not in _NOT_AT_ONCE:
            raise
    return await _one_by_one(connection, statement, types, rows)


def texts(names: Sequence[str], types: Types, rows: Sequence[Row]) -> list[list[str | None]]:
    """Return the text of each row's parameters, in the order of `names`.

    Raises:
        MissingValue: a row lacks a value.
    """
    writers: list[tuple[str, bool]] = [
        (name, is_array) for name, (_, is_array) in zip(names, types, strict=True)
    ]
    made = []
    for number, row in enumerate(rows):
        try:
            made.append([as_text(row[name], is_array) for name, is_array in writers])
        except KeyError as error:
            raise MissingValue(error.args[0], number) from None
    return made


async def _copy(
    connection: asyncpg.Connection,
    statement: Statement,
    target: Copy,
    types: Types,
    rows: Sequence[Row],
) -> int:
    kinds = dict(zip(statement.parameters, types, strict=True))
    lines = copy_lines(texts(target.parameters, [kinds[n] for n in target.parameters], rows))

    async def source() -> Any:
        yield lines

    status = await connection.copy_to_table(
        target.table,
        source=source(),
        columns=list(target.columns),
        schema_name=target.schema,
        format="text",
        encoding="utf-8",
    )
    return affected(status)


async def _at_once(
    connection: asyncpg.Connection,
    statement: Statement,
    insert: Insert,
    types: Types,
    rows: Sequence[Row],
) -> int:
    columns = zip(*texts(statement.parameters, types, rows), strict=True)
    sql = insert.many([name for name, _ in types])
    return affected(await connection.execute(sql, *map(list, columns)))


async def _one_by_one(
    connection: asyncpg.Connection, statement: Statement, types: Types, rows: Sequence[Row]
) -> int:
    prepared = await connection.prepare(typed(statement.sql, types))
    count = 0
    for values in texts(statement.parameters, types, rows):
        await prepared.fetch(*values)
        count += affected(prepared.get_statusmsg())
    return count


def typed(sql: Callable[[Sequence[str]], str], types: Types) -> str:
    """Return a statement whose parameters are text, read by the rules of the type needed."""
    return sql([f"(${n}::text)::{name}" for n, (name, _) in enumerate(types, start=1)])


def affected(status: str) -> int:
    """Return the rows that a status like `INSERT 0 5` counts."""
    last = status.rsplit(" ", 1)[-1]
    return int(last) if last.isdigit() else 0
