"""Commands of NoETL's spelling: every statement's rows and count, fenced where they write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import asyncpg
import orjson

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Config, Fence, Outcome, Saved
from streams.worker.tools.postgres import fence as pg_fence
from streams.worker.tools.postgres.literal import (
    StatementGroup,
    changes_session,
    groups,
    has_no_rows,
    is_bracket,
)
from streams.worker.tools.postgres.pools import PooledDatabase
from streams.worker.tools.postgres.statement import Statement
from streams.worker.tools.postgres.values import as_text, rows_of
from streams.worker.tools.postgres.write import affected, typed

ANSWER_BYTES = 32 * 1024 * 1024
"""The largest answer that a fence stores for a retried attempt."""
_Answer = dict[str, Json]
"""{columns, rows, row_count, message} of one statement."""
_KINDS = (
    ("23", "db_constraint"),
    ("22", "db_data"),
    ("28", "db_auth"),
    ("40", "db_conflict"),
    ("42", "db_statement"),
    ("55", "db_conflict"),
)
_RETRYABLE = ("40", "55")


@dataclass(frozen=True, slots=True)
class _Run:
    """The database, and the values of `$1`, `$2` … in all statements of the command."""

    database: PooledDatabase
    params: Sequence[Json]


async def run_literal(
    database: PooledDatabase, texts: Sequence[str], config: Config, fence: Fence
) -> Outcome:
    """Run all statements: those that may, in one transaction; with `fence`, once.

    Raises:
        BadConfig: the parameters do not fit, or an answer is too large for the fence.
        asyncpg.PostgresError: the database rejects a statement.
    """
    found = groups(texts)
    run = _Run(database, _params(config))
    tidy = any(changes_session(one) for group in found for one in group.statements)
    answers: list[_Answer] = []
    is_adopted = False
    async with database.connection(tidy=tidy) as connection:
        for number, group in enumerate(found):
            named = replace(fence, partition=f"{fence.partition}/{number}") if number else fence
            if group.in_transaction and config.get("fence", group.writes):
                some, was_there = await _fenced(run, connection, group, named)
                is_adopted |= was_there
            else:
                some = await _unfenced(run, connection, group)
            answers += some
    meta: dict[str, Json] = {"fence": "adopted"} if is_adopted else {}
    return Outcome(status="success", data=_data(answers), meta=meta)


async def _unfenced(
    run: _Run, connection: asyncpg.Connection, group: StatementGroup
) -> list[_Answer]:
    if not group.in_transaction or len(group.statements) == 1:
        return await _answers(run, connection, group)
    async with connection.transaction():
        return await _answers(run, connection, group)


async def _fenced(
    run: _Run, connection: asyncpg.Connection, group: StatementGroup, fence: Fence
) -> tuple[list[_Answer], bool]:
    """Return the answers, and whether an earlier attempt gave them."""
    await pg_fence.ready(run.database, connection)
    async with connection.transaction(isolation="read_committed"):
        if not await pg_fence.take(connection, [fence], Saved(row_count=0)):
            found = await pg_fence.find(connection, [fence])
            stored = (found[fence].output or {}).get("statements")
            return stored if isinstance(stored, list) else [], True
        answers = await _answers(run, connection, group)
        _check_size(answers)
        count = sum(int(str(one["row_count"])) for one in answers)
        await pg_fence.fill(connection, fence, count, {"statements": [*answers]})
    return answers, False


async def _answers(
    run: _Run, connection: asyncpg.Connection, group: StatementGroup
) -> list[_Answer]:
    return [
        _nothing("part of the command's transaction")
        if group.in_transaction and is_bracket(one)
        else await _answer(run, connection, one)
        for one in group.statements
    ]


async def _answer(run: _Run, connection: asyncpg.Connection, statement: Statement) -> _Answer:
    sql, values = await _bound(run, connection, statement)
    if not values and has_no_rows(statement):
        status = await connection.execute(sql)  # one round trip
        return _nothing(status, affected(status))
    prepared = await connection.prepare(sql, name="")  # unnamed: never used again
    rows = rows_of(await prepared.fetch(*values))
    status = prepared.get_statusmsg() or ""
    columns: list[Json] = [one.name for one in prepared.get_attributes()]
    count = len(rows) if columns else affected(status)
    return {"columns": columns, "rows": rows, "row_count": count, "message": status}


async def _bound(
    run: _Run, connection: asyncpg.Connection, statement: Statement
) -> tuple[str, list[str | None]]:
    """Return the statement with the values of its `$1`, `$2` …, each as text."""
    if not run.params or not any(one.kind == "place" for one in statement.tokens):
        return statement.text, []
    types = await run.database.types_of(connection, statement.text)
    if len(types) > len(run.params):
        raise BadConfig(f"the statement has {len(types)} parameters, not {len(run.params)}")
    values = [as_text(run.params[n], is_array) for n, (_, is_array) in enumerate(types)]
    return typed(statement.numbered, types), values


def _params(config: Config) -> Sequence[Json]:
    params = config.get("params")
    if params is None or params == {}:
        return ()
    if isinstance(params, list):
        return params
    raise BadConfig(
        "'params' must be a list, for $1, $2 …: in NoETL's spelling `:name` is part of the SQL"
    )


def _nothing(message: str, row_count: int = 0) -> _Answer:
    return {"columns": [], "rows": [], "row_count": row_count, "message": message}


def _data(answers: Sequence[_Answer]) -> _Answer:
    """Return the last statement's answer, and that of every statement by its number."""
    last = answers[-1] if answers else _nothing("no statement")
    data: _Answer = {"status": "success", "statement_count": len(answers), **last}
    for number, one in enumerate(answers):
        data[f"command_{number}"] = {"status": "success", **one}
    return data


def _check_size(answers: Sequence[_Answer]) -> None:
    size = len(orjson.dumps(answers))
    if size > ANSWER_BYTES:
        raise BadConfig(
            f"the answers have {size} bytes, more than the {ANSWER_BYTES} of a fence; return "
            "fewer columns, or set `fence: false` if running the command twice is harmless"
        )


def db_error(error: asyncpg.PostgresError) -> Outcome:
    """Return the outcome of a rejected statement."""
    code = error.sqlstate or ""
    detail = getattr(error, "detail", None)
    kind = next((name for start, name in _KINDS if code.startswith(start)), "db_error")
    return db_failed(
        "db_timeout" if code == "57014" else kind,
        f"{error} ({detail})" if detail else str(error),
        code=code,
        retryable=code.startswith(_RETRYABLE),
    )


def db_failed(kind: str, message: str, *, code: str = "", retryable: bool = False) -> Outcome:
    """Return the outcome of a failed command."""
    problem: _Answer = {"kind": kind, "message": message, "retryable": retryable, "code": code}
    return Outcome(status="error", error=problem, detail={"pg": {"code": code}} if code else {})
