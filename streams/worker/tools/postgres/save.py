"""Saves of a frame: batches and fences in one transaction; bisection of rejected rows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import asyncpg

from streams.worker.errors import BadConfig, SaveFailed, TargetUnavailable
from streams.worker.port import Config, Fence, Saved
from streams.worker.tools.postgres import fence as pg_fence
from streams.worker.tools.postgres.insert import Insert, insert_of
from streams.worker.tools.postgres.pools import PooledDatabase
from streams.worker.tools.postgres.statement import Statement, statements
from streams.worker.tools.postgres.write import (
    NOT_AT_ONCE,
    MissingValue,
    Row,
    as_json,
    write,
    write_anyhow,
)
from streams.worker.tools.task_config import mapping, mappings, text

COMMAND = ("command", "query", "sql", "statement")
TRIES = 4
AGAIN = frozenset({"40001", "40P01", "55P03"})
"""Codes of conflicts with other transactions: the same save may work later."""
_ROWS_FAULT = ("21", "22", "23", "P0")
_STATEMENTS_FAULT = ("42", "3F")
REFUSED = (asyncpg.PostgresError, UnicodeEncodeError)
"""Errors of a database that rejects a statement, and of text that cannot be sent."""


@dataclass(frozen=True, slots=True)
class StatementRun:
    """Rows of one statement; `calls` is the call of the batch that each belongs to."""

    task: str
    statement: Statement
    rows: list[Row]
    calls: list[int]


async def save(
    database: PooledDatabase, batches: Sequence[tuple[Fence, Sequence[Config]]], saved: Saved
) -> Mapping[Fence, Saved]:
    """Write all batches without an existing fence; return the existing fences' content.

    Raises:
        SaveFailed: the database rejects the rows; nothing was written.
        TargetUnavailable: the database is down or too busy.
    """
    runs = {fence: list(_runs(fence.task, configs)) for fence, configs in batches}
    at_once = True
    for tried in range(TRIES):
        try:
            async with database.connection() as connection:
                await pg_fence.ready(database, connection)
                if at_once and (insert := _single(runs)) is not None:
                    return await _in_one_statement(database, connection, runs, saved, insert)
                return await _in_one_transaction(database, connection, runs, saved, at_once)
        except REFUSED as error:
            if at_once and error_code(error) in NOT_AT_ONCE:
                at_once = False
                continue
            if error_code(error) not in AGAIN:
                raise await _refused_rows(database, runs, error) from error
            await asyncio.sleep(0.05 * 2**tried)
    raise TargetUnavailable(f"database {database.name}: too much contention after {TRIES} tries")


def _single(runs: Mapping[Fence, Sequence[StatementRun]]) -> Insert | None:
    """Return the INSERT, if the whole save is one that can take many rows."""
    if len(runs) != 1:
        return None
    [of_task] = runs.values()
    if len(of_task) != 1 or not of_task[0].rows:
        return None
    return insert_of(of_task[0].statement)


async def _in_one_statement(
    database: PooledDatabase,
    connection: asyncpg.Connection,
    runs: Mapping[Fence, Sequence[StatementRun]],
    saved: Saved,
    insert: Insert,
) -> Mapping[Fence, Saved]:
    """Save in a single statement, with one round trip."""
    [(fence, [run])] = runs.items()
    types = await database.types_of(connection, run.statement.sql())
    with _missing(run):
        rows = as_json(run.statement.parameters, types, run.rows)
    names = [name for name, _ in types]
    if await pg_fence.take_with_rows(connection, fence, saved, insert, names, rows):
        return {}
    return await pg_fence.find(connection, [fence])


async def _in_one_transaction(
    database: PooledDatabase,
    connection: asyncpg.Connection,
    runs: Mapping[Fence, Sequence[StatementRun]],
    saved: Saved,
    at_once: bool,
) -> Mapping[Fence, Saved]:
    async with connection.transaction(isolation="read_committed"):
        taken = await pg_fence.take(connection, list(runs), saved)
        for run in (run for fence in runs if fence in taken for run in runs[fence]):
            with _missing(run):
                await write(database, connection, run.statement, run.rows, at_once=at_once)
        rest = [fence for fence in runs if fence not in taken]
        return await pg_fence.find(connection, rest) if rest else {}


@contextmanager
def _missing(run: StatementRun) -> Iterator[None]:
    """Raise a missing value as the failure of its call."""
    try:
        yield
    except MissingValue as error:
        raise SaveFailed(run.task, str(error), rows=(run.calls[error.row],)) from None


def _runs(task: str, configs: Sequence[Config]) -> Iterator[StatementRun]:
    """Group adjacent calls of the same statement."""
    run: StatementRun | None = None
    for call, config in ((n, one) for n, whole in enumerate(configs) for one in saves_in(whole)):
        try:
            [statement] = statements(text(config, *COMMAND))
            rows = rows_in(config)
        except BadConfig as error:
            raise SaveFailed(task, str(error), rows=(call,)) from error
        except ValueError:
            raise SaveFailed(task, "a deferred save must be one statement", rows=(call,)) from None
        if run is None or run.statement is not statement:
            if run is not None:
                yield run
            run = StatementRun(task, statement, [], [])
        run.rows.extend(rows)
        run.calls.extend([call] * len(rows))
    if run is not None:
        yield run


def saves_in(config: Config) -> Sequence[Config]:
    """Return the parts of a call: those of `saves`, each with its statement, or the call."""
    saves = config.get("saves")
    if not saves or not isinstance(saves, list):
        return (config,)
    return [one for one in saves if isinstance(one, Mapping)]


def rows_in(config: Config) -> list[Row]:
    """Return a call's rows: each of `rows` over `params`, or `params` alone.

    Raises:
        BadConfig: `rows` is not a list of mappings.
    """
    params = mapping(config, "params") if not isinstance(config.get("params"), list) else None
    if params is None:
        raise BadConfig("'params' of a save must be a mapping, for placeholders like :name")
    if config.get("rows") is None:
        return [params]
    if (rows := mappings(config, "rows")) is None:
        raise BadConfig("'rows' must be a list of mappings, one for each row to write")
    return [{**params, **row} for row in rows] if params else rows


async def _refused_rows(
    database: PooledDatabase, runs: Mapping[Fence, Sequence[StatementRun]], error: Exception
) -> SaveFailed:
    """Find the rows that the database rejects, by writing them again and rolling back."""
    whole = SaveFailed(_first_task(runs), error_message(error), code=error_code(error))
    every = [run for each in runs.values() for run in each]
    if not error_code(error).startswith(_ROWS_FAULT) and (
        not _is_statements(error) or len(every) == 1
    ):
        return whole
    found: list[SaveFailed] = []
    try:
        async with database.connection() as connection:
            attempt = connection.transaction()
            await attempt.start()
            try:
                for run in every:
                    if not found or found[0].code.startswith(_STATEMENTS_FAULT):
                        found += await _bisect(database, connection, run, 0, len(run.rows))
            finally:
                await attempt.rollback()
    except (asyncpg.PostgresError, TargetUnavailable):
        return whole
    return together(found) if found else whole


async def _bisect(
    database: PooledDatabase, connection: asyncpg.Connection, run: StatementRun, low: int, high: int
) -> list[SaveFailed]:
    """Write rows `low` to `high`; if they are rejected, halve them down to one row.

    A rejected statement is rejected for all of its rows.
    """
    try:
        async with connection.transaction():
            await write_anyhow(database, connection, run.statement, run.rows[low:high])
    except REFUSED as error:
        is_whole = _is_statements(error)
        if high - low == 1 or is_whole:
            calls = dict.fromkeys(run.calls if is_whole else run.calls[low:high])
            return [
                SaveFailed(
                    run.task, error_message(error), rows=tuple(calls), code=error_code(error)
                )
            ]
        middle = (low + high) // 2
        first = await _bisect(database, connection, run, low, middle)
        return first or await _bisect(database, connection, run, middle, high)
    return []


def together(found: Sequence[SaveFailed]) -> SaveFailed:
    """Return the first failure with the rows of all failures of its task and code."""
    first = found[0]
    same = [one for one in found if (one.task, one.code) == (first.task, first.code)]
    rows = dict.fromkeys(row for one in same for row in one.rows)
    return SaveFailed(first.task, first.why, rows=tuple(rows), code=first.code)


def _is_statements(error: Exception) -> bool:
    return error_code(error).startswith(_STATEMENTS_FAULT)


def _first_task(runs: Mapping[Fence, Sequence[StatementRun]]) -> str:
    return next(iter(runs)).task


def error_code(error: Exception) -> str:
    """Return the database's error code, also for text that cannot be sent."""
    return (getattr(error, "sqlstate", None) or "") if _is_sql(error) else "22021"


def error_message(error: Exception) -> str:
    """Return the database's message, with its detail and code."""
    detail = getattr(error, "detail", None)
    return f"{error}{f' ({detail})' if detail else ''} [{error_code(error)}]"


def _is_sql(error: Exception) -> bool:
    return isinstance(error, asyncpg.PostgresError)
