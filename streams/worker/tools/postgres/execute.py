"""Execution of a task's statements on a connection; values are bound as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from streams.worker.errors import BadConfig
from streams.worker.port import Config
from streams.worker.tools.postgres.pools import PooledDatabase
from streams.worker.tools.postgres.reference import reference_of
from streams.worker.tools.postgres.save import rows_in
from streams.worker.tools.postgres.statement import Statement
from streams.worker.tools.postgres.values import as_text, rows_of
from streams.worker.tools.postgres.write import affected, texts, typed, write_anyhow
from streams.worker.tools.sql_answer import SqlAnswer

Work = tuple[Sequence[Statement], Config]
"""Statements, and the configuration with their values."""


async def execute(
    database: PooledDatabase, connection: asyncpg.Connection, works: Sequence[Work]
) -> SqlAnswer:
    """Run the statements of each part; row counts of several parts are added."""
    answer = SqlAnswer([], 0)
    count = 0
    for commands, config in works:
        answer = await _statements(database, connection, commands, config)
        count += answer.row_count
    if len(works) == 1:
        return answer
    return SqlAnswer(answer.rows, count, {**answer.reference, "range": f"rows:{count}"})


async def _statements(
    database: PooledDatabase,
    connection: asyncpg.Connection,
    commands: Sequence[Statement],
    config: Config,
) -> SqlAnswer:
    """Run the statements in order and return the last one's answer."""
    answer = SqlAnswer([], 0)
    for command in commands:
        if config.get("rows") is not None and (command.names or len(commands) == 1):
            async with connection.transaction():
                count = await write_anyhow(database, connection, command, rows_in(config))
            answer = SqlAnswer([], count)
        else:
            sql, values = await _bound(database, connection, command, config)
            answer = await _answer(connection, command, sql, values)
        answer.reference = reference_of(command, answer)
    return answer


async def _answer(
    connection: asyncpg.Connection, command: Statement, sql: str, values: Sequence[str | None]
) -> SqlAnswer:
    """Run one statement in as few round trips as its answer allows."""
    if command.returns is None:
        prepared = await connection.prepare(sql)
        rows = rows_of(await prepared.fetch(*values))
        return SqlAnswer(rows, affected(prepared.get_statusmsg()))
    if command.returns:
        rows = rows_of(await connection.fetch(sql, *values))
        return SqlAnswer(rows, len(rows))
    status = await connection.execute(sql, *values)
    return SqlAnswer([], affected(status))


async def _bound(
    database: PooledDatabase, connection: asyncpg.Connection, command: Statement, config: Config
) -> tuple[str, Sequence[str | None]]:
    """Return a statement whose parameters are text, and their values."""
    params = config.get("params")
    if not params:
        return command.text, ()
    if isinstance(params, list):
        types = await database.types_of(connection, command.text)
        if len(types) != len(params):
            raise BadConfig(f"the statement has {len(types)} parameters, not {len(params)}")
        values = [as_text(value, kind[1]) for value, kind in zip(params, types, strict=True)]
        return typed(command.numbered, types), values
    if not isinstance(params, Mapping):
        raise BadConfig("'params' must be a mapping or a list")
    if not command.names:
        return command.text, ()
    types = await database.types_of(connection, command.sql())
    return typed(command.sql, types), texts(command.parameters, types, params)
