"""The tool that runs SQL in Snowflake, with the client and the credential of the sink."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import snowflake.connector
from snowflake.connector.errors import Error, InterfaceError, OperationalError

from streams.events.model import Json
from streams.worker.errors import BadConfig, TargetUnavailable, UnknownCredential
from streams.worker.port import Call, Config, Credentials, Outcome
from streams.worker.sinks.snowflake import LOGIN
from streams.worker.tools.postgres.literal import command_texts
from streams.worker.tools.postgres.statement import Statement, literal_statements
from streams.worker.tools.postgres.values import jsonable
from streams.worker.tools.task_config import failed, seconds, text

_LOGIN_S = 20


class SnowflakeTool:
    """Runs `command`, `query` or `commands` with the credential `auth`, in one session.

    Templates are text of the SQL. The answer is {columns, rows, row_count} of the last
    statement. There is no fence: a retried attempt runs the statements again.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the statements.

        Raises:
            TargetUnavailable: Snowflake cannot be reached.
        """
        try:
            commands = [one for part in command_texts(config) for one in literal_statements(part)]
            login = await self.login(config, call)
            async with asyncio.timeout(seconds(config, call, None)):
                data = await asyncio.to_thread(_execute, login, commands)
        except (BadConfig, UnknownCredential) as error:
            return failed("snowflake.config", str(error))
        except (OperationalError, InterfaceError) as error:
            raise TargetUnavailable(f"snowflake: {error}; retrying") from error
        except Error as error:
            return failed("snowflake.sql", str(error))
        except TimeoutError:
            return failed("snowflake.timeout", "Snowflake timed out")
        return Outcome(status="success", data=data)

    async def close(self) -> None:
        """Do nothing: no connection stays open."""

    async def login(self, config: Config, call: Call) -> dict[str, str]:
        """Return the arguments of a connection.

        Raises:
            BadConfig: the credential has no account.
            UnknownCredential: it does not exist.
        """
        name = text(config, "auth", "credential")
        fields = await self._credentials.find(call.tenant_id, call.organization_id, name)
        return login_of(fields)


def login_of(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of a connection from a credential, whose fields may begin with `sf_`.

    Raises:
        BadConfig: it has no account.
    """
    found = {name: fields.get(name) or fields.get(f"sf_{name}") for name in LOGIN}
    login = {name: value for name, value in found.items() if value}
    if "account" not in login:
        raise BadConfig("a snowflake task needs `auth` whose credential has account, user …")
    return login


def _execute(login: Mapping[str, str], commands: Sequence[Statement]) -> dict[str, Json]:
    data: dict[str, Json] = {"columns": [], "rows": [], "row_count": 0}
    with snowflake.connector.connect(**login, login_timeout=_LOGIN_S) as session:
        cursor = session.cursor()
        try:
            for command in commands:
                cursor.execute(command.text)
                data = _answer(cursor.description or (), cursor.fetchall(), cursor.rowcount)
        finally:
            cursor.close()
    return {"status": "success", "statement_count": len(commands), **data}


def _answer(
    columns: Sequence[tuple[object, ...]], found: Sequence[object], count: int | None
) -> dict[str, Json]:
    names: list[Json] = [str(one[0]) for one in columns]
    rows: list[Json] = [
        {str(name): jsonable(one) for name, one in zip(names, row, strict=True)}
        for row in found
        if isinstance(row, tuple)
    ]
    return {"columns": names, "rows": rows, "row_count": len(rows) if count is None else count}
