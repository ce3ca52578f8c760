"""Saves of a frame in NoETL's spelling: the commands of all rows in one transaction, fenced."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import asyncpg

from streams.worker.errors import BadConfig, SaveFailed, TargetUnavailable
from streams.worker.port import Config, Fence, Saved
from streams.worker.tools.postgres import fence as pg_fence
from streams.worker.tools.postgres.literal import command_texts, groups, is_bracket
from streams.worker.tools.postgres.pools import PooledDatabase
from streams.worker.tools.postgres.save import (
    AGAIN,
    REFUSED,
    TRIES,
    error_code,
    error_message,
    together,
)

_BETWEEN = "\n;\n"
"""A newline ends a comment, which would hide the semicolon."""


async def save_literal(
    database: PooledDatabase, batches: Sequence[tuple[Fence, Sequence[Config]]], saved: Saved
) -> Mapping[Fence, Saved]:
    """Run the commands of all batches without an existing fence; return the others' content.

    Raises:
        SaveFailed: the database rejects a command; nothing was written.
        TargetUnavailable: the database is down or too busy.
    """
    commands = {fence: _commands(fence.task, configs) for fence, configs in batches}
    for tried in range(TRIES):
        try:
            async with database.connection() as connection:
                await pg_fence.ready(database, connection)
                return await _write(connection, commands, saved)
        except REFUSED as error:
            if error_code(error) not in AGAIN:
                raise await _rejected(database, commands, error) from error
            await asyncio.sleep(0.05 * 2**tried)
    raise TargetUnavailable(f"database {database.name}: too much contention after {TRIES} tries")


async def _write(
    connection: asyncpg.Connection, commands: Mapping[Fence, Sequence[str]], saved: Saved
) -> Mapping[Fence, Saved]:
    async with connection.transaction(isolation="read_committed"):
        taken = await pg_fence.take(connection, list(commands), saved)
        for fence, texts in commands.items():
            if fence in taken:
                await connection.execute(_BETWEEN.join(texts))  # one round trip
        rest = [fence for fence in commands if fence not in taken]
        return await pg_fence.find(connection, rest) if rest else {}


def _commands(task: str, configs: Sequence[Config]) -> list[str]:
    """Return the command of each call.

    Raises:
        SaveFailed: a call's command cannot run in the frame's transaction.
    """
    made = []
    for number, config in enumerate(configs):
        try:
            made.append(_command(config))
        except BadConfig as error:
            raise SaveFailed(task, str(error), rows=(number,)) from error
    return made


def _command(config: Config) -> str:
    found = groups(command_texts(config))
    statements = [one for group in found for one in group.statements]
    if any(not one.in_transaction for one in found) or any(map(is_bracket, statements)):
        raise BadConfig("a save of a loop runs in one transaction with its frame's other rows")
    if any("\0" in one.text for one in statements):
        raise BadConfig("the command has a NUL character, which SQL cannot carry")
    return _BETWEEN.join(one.text for one in statements)


async def _rejected(
    database: PooledDatabase, commands: Mapping[Fence, Sequence[str]], error: Exception
) -> SaveFailed:
    """Find the calls that the database rejects, by running each and rolling all of them back."""
    whole = SaveFailed(next(iter(commands)).task, error_message(error), code=error_code(error))
    found: list[SaveFailed] = []
    try:
        async with database.connection() as connection:
            attempt = connection.transaction()
            await attempt.start()
            try:
                for fence, texts in commands.items():
                    for number, text in enumerate(texts):
                        one = await _tried(connection, fence.task, number, text)
                        found += [one] if one is not None else []
            finally:
                await attempt.rollback()
    except (asyncpg.PostgresError, TargetUnavailable):
        return whole
    return together(found) if found else whole


async def _tried(
    connection: asyncpg.Connection, task: str, number: int, text: str
) -> SaveFailed | None:
    try:
        async with connection.transaction():
            await connection.execute(text)
    except REFUSED as error:
        return SaveFailed(task, error_message(error), rows=(number,), code=error_code(error))
    return None
