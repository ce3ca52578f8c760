"""The tool that runs SQL in DuckDB, in memory or in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb

from streams.events.model import Json
from streams.playbook.spelling import Spelling
from streams.worker.errors import BadConfig, TargetUnavailable, UnknownCredential
from streams.worker.port import Call, Config, Credentials, Outcome
from streams.worker.tools.duckdb_files import DuckdbFiles
from streams.worker.tools.duckdb_secrets import SessionSecret, create_secrets, find_secrets
from streams.worker.tools.postgres.literal import command_texts, has_no_rows
from streams.worker.tools.postgres.reference import reference_of
from streams.worker.tools.postgres.statement import Statement, literal_statements, statements
from streams.worker.tools.postgres.values import jsonable
from streams.worker.tools.sql_answer import SqlAnswer
from streams.worker.tools.task_config import failed, seconds, text

MEMORY = "512MB"
_LOCKED = "Could not set lock"


class DuckdbTool:
    """Runs `command` (or `query`, `sql`, `statement`) in `database`, a file, else in memory.

    Every call has its own session; one in memory starts empty. `params` is a mapping for :name
    or a list for `?`. The answer is {"rows": [...], "row_count": n}, as the postgres tool's,
    with {"store", "key", "range"} of a write. There is no fence: a retried attempt writes again.

    In NoETL's spelling the default is a file of the execution below `folder`, the text has no
    placeholders, and `auth` names credentials for secrets of the session.
    """

    def __init__(
        self,
        credentials: Credentials | None = None,
        *,
        memory: str = MEMORY,
        folder: Path | None = None,
    ) -> None:
        self._credentials, self._files = credentials, DuckdbFiles(folder)
        self._settings: dict[str, str | bool | int | float | list[str]] = {"memory_limit": memory}
        self._settings["threads"] = 1

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the statements of the task and return the last one's answer.

        Raises:
            TargetUnavailable: another process has the execution's file open.
        """
        try:
            if call.spelling is Spelling.NOETL:
                return await self._run_literal(config, call)
            commands = statements(text(config, "command", "query", "sql", "statement"))
            place = str(config.get("database") or ":memory:")
            return await self._run(
                place, call, config, lambda session: _execute(session, commands, config)
            )
        except (BadConfig, UnknownCredential) as error:
            return failed("duckdb.config", str(error))
        except duckdb.Error as error:
            return _refused(error)

    async def _run_literal(self, config: Config, call: Call) -> Outcome:
        commands = [one for part in command_texts(config) for one in literal_statements(part)]
        secrets: list[SessionSecret] = []
        if self._credentials is not None:
            secrets = await find_secrets(self._credentials, config, call)
        attaches = not any("attach" in one.words for one in commands)

        def work(session: duckdb.DuckDBPyConnection) -> dict[str, Json]:
            create_secrets(session, secrets, attaches=attaches)
            return _execute_literal(session, commands, config.get("params"))

        async with self._files.place(config, call) as place:
            try:
                return await self._run(place, call, config, work)
            except duckdb.IOException as error:
                if _LOCKED not in str(error):
                    raise
                raise TargetUnavailable(f"{place}: another process has it open") from error

    async def _run(
        self,
        place: str,
        call: Call,
        config: Config,
        execute: Callable[[duckdb.DuckDBPyConnection], dict[str, Json]],
    ) -> Outcome:
        limit = seconds(config, call, None)
        session = await asyncio.to_thread(duckdb.connect, place, config=self._settings)
        work = asyncio.create_task(asyncio.to_thread(execute, session))
        try:
            async with asyncio.timeout(limit):
                data = await asyncio.shield(work)
        except TimeoutError:
            return failed("duckdb.timeout", f"no answer within {limit} s")
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


def _execute_literal(
    session: duckdb.DuckDBPyConnection, commands: Sequence[Statement], params: Json
) -> dict[str, Json]:
    """Run statements without placeholders; return columns, rows and count of the last."""
    data: dict[str, Json] = {"columns": [], "rows": [], "row_count": 0}
    for command in commands:
        answer = session.execute(command.text, params or None)
        names = [column[0] for column in answer.description or ()]
        found = answer.fetchall() if names else []
        if has_no_rows(command):  # DuckDB answers a change with one row, the count
            count = found[0][0] if found and isinstance(found[0][0], int) else 0
            data = {"columns": [], "rows": [], "row_count": count}
        else:
            rows: list[Json] = [dict(zip(names, map(jsonable, row), strict=True)) for row in found]
            data = {"columns": [*names], "rows": rows, "row_count": len(rows)}
    return {"status": "success", "statement_count": len(commands), **data}


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
