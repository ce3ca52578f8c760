"""The tool that runs SQL in DuckDB, in memory or in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import duckdb

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.postgres.reference import reference_of
from streams.worker.tools.postgres.statement import Statement, statements
from streams.worker.tools.postgres.values import jsonable
from streams.worker.tools.sql_answer import SqlAnswer
from streams.worker.tools.task_config import failed, seconds, text

MEMORY = "512MB"


class DuckdbTool:
    """Runs `command` (or `query`, `sql`, `statement`) in `database`, a file, else in memory.

    Every call has its own session; one in memory starts empty. `params` is a mapping for :name
    or a list for `?`. The answer is {"rows": [...], "row_count": n}, as the postgres tool's,
    with {"store", "key", "range"} of a write. There is no fence: a retried attempt writes again.
    """

    def __init__(self, *, memory: str = MEMORY) -> None:
        self._settings: dict[str, str | bool | int | float | list[str]] = {"memory_limit": memory}
        self._settings["threads"] = 1

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the statements of the task and return the last one's answer."""
        try:
            commands = statements(text(config, "command", "query", "sql", "statement"))
            limit = seconds(config, call, None)
            place = str(config.get("database") or ":memory:")
            session = await asyncio.to_thread(duckdb.connect, place, config=self._settings)
        except BadConfig as error:
            return failed("duckdb.config", str(error))
        except duckdb.Error as error:
            return _refused(error)
        work = asyncio.create_task(asyncio.to_thread(_execute, session, commands, config))
        try:
            async with asyncio.timeout(limit):
                data = await asyncio.shield(work)
        except TimeoutError:
            return failed("duckdb.timeout", f"no answer within {limit} s")
        except BadConfig as error:
            return failed("duckdb.config", str(error))
        except duckdb.Error as error:
            return _refused(error)
        finally:
            session.interrupt()
            await asyncio.gather(work, return_exceptions=True)
            session.close()
        return Outcome(status="success", data=data)

    async def close(self) -> None:
        """Do nothing: no connection stays open."""


def _execute(
    session: duckdb.DuckDBPyConnection, commands: Sequence[Statement], config: Config
) -> dict[str, Json]:
    result = SqlAnswer([], 0)
    for command in commands:
        sql, values = bound(command, config.get("params"))
        answer = session.execute(sql, values)
        names = [column[0] for column in answer.description or ()]
        found = answer.fetchall() if names else []
        if command.returns is False:  # DuckDB answers a change with one row, the count
            result = SqlAnswer([], int(found[0][0]) if found else 0)
        else:
            rows: list[Json] = [dict(zip(names, map(jsonable, row), strict=True)) for row in found]
            result = SqlAnswer(rows, len(rows))
        result.reference = reference_of(command, result, "duckdb")
    return result.data


def bound(command: Statement, params: Json) -> tuple[str, Json]:
    """Return a statement in DuckDB's syntax, and its parameters.

    Raises:
        BadConfig: a parameter has no value.
    """
    if not params:
        return command.text, None
    if isinstance(params, list):
        return command.text, params
    if not isinstance(params, Mapping):
        raise BadConfig("'params' must be a mapping or a list")
    names = command.parameters
    if missing := [name for name in names if name not in params]:
        raise BadConfig(f"no value for the placeholder :{missing[0]} in 'params'")
    return command.sql([f"${name}" for name in names]), {name: params[name] for name in names}


def _refused(error: duckdb.Error) -> Outcome:
    kind = type(error).__name__.removesuffix("Exception").lower()
    return failed(f"duckdb.{kind}", str(error))
