"""Numbered migrations, up and down; safe to run concurrently."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from streams.errors import Inconsistent, Refused
from streams.log.errors import LogUnavailable
from streams.postgres import CONNECTION_LOST, connecting, translated

_NAME = re.compile(r"(\d{4})_(\w+)\.up\.sql")
_LOCK = "SELECT pg_advisory_lock(hashtext('noetl.migrate'))"
_LEDGER = """
CREATE SCHEMA IF NOT EXISTS noetl;
CREATE TABLE IF NOT EXISTS noetl.migration (
  number integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)"""


class ChangedMigration(Inconsistent):
    """A migration's text differs from the applied one."""

    def __init__(self, migration: Migration) -> None:
        super().__init__(
            f"migration {migration} was changed after it was applied; "
            "restore its text and write a new migration instead"
        )


class FailedMigration(Refused):
    """Postgres rejected a step; the database stays at the previous one."""

    def __init__(self, step: str, error: Exception) -> None:
        super().__init__(
            f"{step} failed and was rolled back: {error}; fix the cause and migrate again"
        )


class NewerDatabase(Refused):
    """The database has migrations this program does not know."""

    def __init__(self, newest: int, known: int) -> None:
        super().__init__(
            f"the database is at migration {newest}, this program knows {known}; "
            "upgrade the program, or migrate down with the newer one first"
        )


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step and its inverse."""

    number: int
    name: str
    up: str
    down: str

    def __str__(self) -> str:
        return f"{self.number:04d}_{self.name}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.up.encode()).hexdigest()


def migrations() -> list[Migration]:
    """Return every migration of this program, in order."""
    folder = files("streams.log").joinpath("migrations")
    found = []
    for entry in folder.iterdir():
        if match := _NAME.fullmatch(entry.name):
            down = folder.joinpath(entry.name.replace(".up.", ".down."))
            texts = entry.read_text("utf-8"), down.read_text("utf-8")
            found.append(Migration(int(match[1]), match[2], *texts))
    return sorted(found, key=lambda migration: migration.number)


async def migrate(dsn: str, *, to: int | None = None, dry_run: bool = False) -> list[str]:
    """Migrate the database to `to` (None: the newest); return the applied steps.

    Each step is one transaction. A second process waits for the first, then does nothing.

    Raises:
        LogUnavailable: the database cannot be reached.
        ChangedMigration, NewerDatabase: the database was migrated by another version.
        FailedMigration: Postgres rejected a step.
    """
    with connecting(LogUnavailable):
        connection = await asyncpg.connect(dsn, timeout=10)
    try:
        with _step("locking out other migrations"):
            await connection.execute(_LOCK)
        return await _migrate(connection, migrations(), to, dry_run)
    finally:
        # Also releases the lock. An error here must not hide an earlier one.
        with suppress(*CONNECTION_LOST, asyncpg.PostgresError):
            await connection.close(timeout=10)


async def _migrate(
    connection: asyncpg.Connection, known: Sequence[Migration], to: int | None, dry_run: bool
) -> list[str]:
    applied = await _applied(connection, dry_run)
    target = known[-1].number if to is None else to
    _check(known, applied)
    done = []
    for migration in known:
        if migration.number <= target and migration.number not in applied:
            done.append(f"up {migration}")
            if not dry_run:
                await _up(connection, migration)
    for migration in reversed(known):
        if migration.number > target and migration.number in applied:
            done.append(f"down {migration}")
            if not dry_run:
                await _down(connection, migration)
    if not dry_run and target > 0:
        with _step("creating partitions ahead"):
            made = await connection.fetchval("SELECT noetl.ensure_partitions()")
        if made:
            done.append(f"created {made} partitions ahead")
    return done


async def _applied(connection: asyncpg.Connection, dry_run: bool) -> dict[int, str]:
    """Return the digests of applied steps; a dry run does not create the table."""
    with _step("reading noetl.migration"):
        if not dry_run:
            await connection.execute(_LEDGER)
        elif await connection.fetchval("SELECT to_regclass('noetl.migration')") is None:
            return {}
        rows = await connection.fetch("SELECT number, sha256 FROM noetl.migration")
    return {row["number"]: row["sha256"] for row in rows}


def _check(known: Sequence[Migration], applied: dict[int, str]) -> None:
    if applied and max(applied) > known[-1].number:
        raise NewerDatabase(max(applied), known[-1].number)
    for migration in known:
        if applied.get(migration.number, migration.sha256) != migration.sha256:
            raise ChangedMigration(migration)


def _step(what: str) -> AbstractContextManager[None]:
    """Translate the errors of a step."""
    return translated(LogUnavailable, what, refused=lambda error: FailedMigration(what, error))


async def _up(connection: asyncpg.Connection, migration: Migration) -> None:
    with _step(f"migration {migration}"):
        async with connection.transaction():
            await connection.execute(migration.up)
            await connection.execute(
                "INSERT INTO noetl.migration (number, name, sha256) VALUES ($1, $2, $3)",
                migration.number,
                migration.name,
                migration.sha256,
            )


async def _down(connection: asyncpg.Connection, migration: Migration) -> None:
    with _step(f"migration {migration}"):
        async with connection.transaction():
            await connection.execute(migration.down)
            await connection.execute(
                "DELETE FROM noetl.migration WHERE number = $1", migration.number
            )
