"""The postgres tool: statements one by one, and a frame's saves as one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import asyncpg
import orjson

from streams.events.model import Json
from streams.playbook.spelling import Spelling
from streams.worker.errors import BadConfig, SaveFailed, UnknownCredential
from streams.worker.port import Call, Config, Credentials, Fence, Outcome, Saved
from streams.worker.sinks.port import SinkRefused
from streams.worker.tools.download import SourceUnavailable
from streams.worker.tools.postgres import fence as pg_fence
from streams.worker.tools.postgres.dsn import target_of
from streams.worker.tools.postgres.execute import Work, execute
from streams.worker.tools.postgres.literal import command_texts
from streams.worker.tools.postgres.literal_run import db_error, db_failed, run_literal
from streams.worker.tools.postgres.literal_save import save_literal
from streams.worker.tools.postgres.pools import MAX_CONNECTIONS, PooledDatabase, PostgresPools
from streams.worker.tools.postgres.save import COMMAND, save, saves_in
from streams.worker.tools.postgres.statement import statements
from streams.worker.tools.script import Scripts
from streams.worker.tools.task_config import failed, seconds, text

_CONFIG = (BadConfig, UnknownCredential, SourceUnavailable, SinkRefused)
ANSWER_BYTES = 4 * 1024 * 1024
"""The largest answer that a fence stores for a retried attempt."""


class PostgresTool:
    """Runs `command` (or `query`, `sql`, `statement`) in the database of `auth` or `dsn`.

    `params` is a mapping for placeholders like :name, or a list for $1, $2 …; `rows` is a list
    of such mappings, written at once; `saves` is a list of commands with rows of their own.
    Values are always bound, never interpolated.
    The answer is {"rows": [...], "row_count": n}, with {"store": "db", "key": table,
    "range": "id:1-100"} of a statement that changes rows.

    A statement that changes rows is fenced: it runs in one transaction with a row of
    `noetl_fence`, and the same call of a later attempt gets the first one's answer and changes
    nothing. A SELECT is assumed to only read; `fence: true` fences it, and `fence: false`
    disables the fence. NoETL's spelling has an answer of every statement (`literal_run`).
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        deployment: str,
        max_connections: int = MAX_CONNECTIONS,
        scripts: Scripts | None = None,
    ) -> None:
        self._pools = PostgresPools(credentials, max_connections=max_connections)
        self._deployment, self._scripts = deployment, scripts

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the statements of the task, in one transaction where they change rows."""
        if call.spelling is Spelling.NOETL:
            return await self._run_literal(config, call)
        try:
            config = await self._with_script(config, call)
            works = [(statements(text(one, *COMMAND)), one) for one in saves_in(config)]
            limit = seconds(config, call, None)
            database = await self._pools.database(config, call.tenant_id, call.organization_id)
            async with asyncio.timeout(limit):
                return await self._run(database, works, config, call)
        except _CONFIG as error:
            return failed("pg.config", str(error))
        except asyncpg.PostgresError as error:
            return _refused(error)
        except TimeoutError:
            return failed("pg.timeout", "the database timed out")
        except (ValueError, OverflowError) as error:
            return failed("pg.value", f"a value cannot be carried: {error}")

    def target(self, config: Config) -> str:
        """Return a name for the database this task writes to."""
        return target_of(config)

    async def find(self, config: Config, fences: Sequence[Fence]) -> Mapping[Fence, Saved]:
        """Return those of `fences` that exist already.

        Raises:
            SaveFailed: the database does not permit fences.
            TargetUnavailable: the database is down.
        """
        if not fences:
            return {}
        database = await self._database(config, fences[0])
        try:
            async with database.connection() as connection:
                await pg_fence.ready(database, connection)
                return await pg_fence.find(connection, fences)
        except BadConfig as error:
            raise SaveFailed(fences[0].task, str(error)) from error
        except asyncpg.PostgresError as error:
            raise SaveFailed(fences[0].task, f"cannot read its fence: {error}") from error

    async def save(
        self,
        batches: Sequence[tuple[Fence, Sequence[Config]]],
        saved: Saved,
        spelling: Spelling = Spelling.SPEC,
    ) -> Mapping[Fence, Saved]:
        """Write all batches and their fences in one transaction; return the fences found."""
        write = save_literal if spelling is Spelling.NOETL else save
        for fence, configs in batches:
            for config in configs[:1]:
                database = await self._database(config, fence)
                try:
                    return await write(database, batches, saved)
                except BadConfig as error:  # of the connection string
                    raise SaveFailed(fence.task, str(error)) from error
        return {}

    async def close(self) -> None:
        """Close the pools."""
        await self._pools.close()
        if self._scripts is not None:
            await self._scripts.close()

    async def _run_literal(self, config: Config, call: Call) -> Outcome:
        """Run a command of NoETL's spelling: its templates are in the SQL already."""
        try:
            config = await self._with_script(config, call)
            texts, limit = command_texts(config), seconds(config, call, None)
            database = await self._pools.database(config, call.tenant_id, call.organization_id)
            # A rule may retry a command that succeeded: every try has a fence of its own.
            fence = replace(self._fence(call), partition=f"run/{call.partition}.{call.tries}")
            async with asyncio.timeout(limit):
                return await run_literal(database, texts, config, fence)
        except _CONFIG as error:
            return db_failed("db_config", str(error))
        except asyncpg.PostgresError as error:
            return db_error(error)
        except TimeoutError:
            return db_failed("db_timeout", "the database timed out", retryable=True)
        except (ValueError, OverflowError) as error:
            return db_failed("db_data", f"a value cannot be carried: {error}")

    async def _with_script(self, config: Config, call: Call) -> Config:
        """Return the configuration with the text of its script as the command."""
        if config.get("script") is None:
            return config
        if self._scripts is None:
            raise BadConfig("'script' is not supported here; give 'command'")
        return {**config, "command": await self._scripts.read(config, call)}

    async def _database(self, config: Config, fence: Fence) -> PooledDatabase:
        try:
            return await self._pools.database(config, fence.tenant_id, fence.organization_id)
        except (BadConfig, UnknownCredential) as error:
            raise SaveFailed(fence.task, str(error)) from error

    async def _run(
        self,
        database: PooledDatabase,
        works: Sequence[Work],
        config: Config,
        call: Call,
    ) -> Outcome:
        commands = [command for some, _ in works for command in some]
        is_fenced = config.get("fence")
        if is_fenced is None:
            is_fenced = any(one.writes for one in commands)
        # Reset the session if the statements may have changed it, at the cost of a round trip.
        tidy = any(one.returns is None or "set_config" in one.words for one in commands)
        async with database.connection(tidy=tidy) as connection:
            if is_fenced:
                return await self._fenced(database, connection, works, call)
            if len(commands) == 1:  # some, such as VACUUM, cannot run in a transaction
                answer = await execute(database, connection, works)
            else:
                async with connection.transaction():
                    answer = await execute(database, connection, works)
        return Outcome(status="success", data=answer.data)

    async def _fenced(
        self,
        database: PooledDatabase,
        connection: asyncpg.Connection,
        works: Sequence[Work],
        call: Call,
    ) -> Outcome:
        await pg_fence.ready(database, connection)
        fence = self._fence(call)
        async with connection.transaction(isolation="read_committed"):
            if not await pg_fence.take(connection, [fence], Saved(row_count=0)):
                found = await pg_fence.find(connection, [fence])
                return _adopted(found[fence])
            answer = await execute(database, connection, works)
            data = answer.data
            _check_size(data)
            await pg_fence.fill(connection, fence, answer.row_count, {"data": data})
        return Outcome(status="success", data=data)

    def _fence(self, call: Call) -> Fence:
        """Return the fence of a call. A command has no stage; its id alone is unique."""
        return Fence(
            deployment=self._deployment,
            stage_id=call.stage_id or 0,
            frame_id=call.entity_id,
            task=call.task,
            partition=f"run/{call.partition}",
        )


def _refused(error: asyncpg.PostgresError) -> Outcome:
    code = error.sqlstate or ""
    detail = getattr(error, "detail", None)
    message = f"{error} ({detail})" if detail else str(error)
    return failed(f"pg.{code}", message, detail={"pg": {"code": code}})


def _adopted(saved: Saved) -> Outcome:
    data: Json = (saved.output or {}).get("data")
    return Outcome(status="success", data=data, meta={"fence": "adopted"})


def _check_size(data: Mapping[str, Json]) -> None:
    size = len(orjson.dumps(data))
    if size > ANSWER_BYTES:
        raise BadConfig(
            f"the statement's answer has {size} bytes, more than the {ANSWER_BYTES} of a fence; "
            "return fewer columns, or set `fence: false` if running it twice is harmless"
        )
