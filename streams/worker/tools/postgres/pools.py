"""Connection pools, one for each database that tasks use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import asyncpg

from streams.events.model import Json
from streams.postgres import CONNECTION_LOST
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.port import Config, Credentials
from streams.worker.tools import exact_json
from streams.worker.tools.postgres.dsn import (
    NOT_POSTGRES,
    UNREADABLE,
    check_dsn,
    dsn_of,
    target_of,
)

MAX_CONNECTIONS = 3
ACQUIRE_S = 30.0
UNUSED_S = 600.0
STATEMENTS = 1000
# Insufficient resources, operator intervention, system error: not the statement's fault.
_DOWN = ("08", "53", "57", "58")
_NOT_DOWN = frozenset({"57014"})  # a statement that was cancelled


@dataclass(slots=True)
class PooledDatabase:
    """One database: its pool, its statements' parameter types, whether it has the fence table."""

    pool: asyncpg.Pool
    name: str
    types: dict[str, tuple[tuple[str, bool], ...]] = field(default_factory=dict)
    has_fences: bool = False
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONNECTIONS))
    """Waits for a connection without a limit: busy is not down."""
    asked_at: float = 0.0
    """When a task last named it, on the loop's clock."""

    @asynccontextmanager
    async def connection(self, *, tidy: bool = False) -> AsyncIterator[asyncpg.Connection]:
        """Yield a connection; with `tidy`, its session is reset afterwards.

        Raises:
            BadConfig: the connection string is not valid.
            TargetUnavailable: the database is down, or the connection was lost.
        """
        async with self.free, self._acquired(tidy) as connection:
            yield connection

    @asynccontextmanager
    async def _acquired(self, tidy: bool) -> AsyncIterator[asyncpg.Connection]:
        try:
            connection = await self.pool.acquire(timeout=ACQUIRE_S)
        except asyncpg.ClientConfigurationError as error:
            raise BadConfig(f"the connection string cannot be used: {error}") from error
        except (ValueError, OverflowError):
            # Without its message: what was parsed as port or name may be part of a password.
            raise BadConfig(UNREADABLE) from None
        except CONNECTION_LOST as error:  # a connect timeout is an OSError as well
            raise self._down(error) from error
        try:
            yield connection
        except TimeoutError:
            raise  # the statement's own timeout
        except asyncpg.PostgresError as error:
            code = error.sqlstate or ""
            if code[:2] == "42":
                self.types.clear()  # a table may have been recreated with other types
            if code[:2] in _DOWN and code not in _NOT_DOWN:
                raise self._down(error) from error
            raise
        except CONNECTION_LOST as error:
            raise self._down(error) from error
        finally:
            with suppress(*CONNECTION_LOST):
                if tidy and not connection.is_closed():
                    await connection.reset()
            with suppress(*CONNECTION_LOST):
                await self.pool.release(connection)

    def _down(self, error: BaseException) -> TargetUnavailable:
        why = str(error) or type(error).__name__
        return TargetUnavailable(f"database {self.name}: {why}; retrying")

    async def types_of(
        self, connection: asyncpg.Connection, sql: str
    ) -> tuple[tuple[str, bool], ...]:
        """Return the SQL type of each parameter of `sql`, and whether it is an array."""
        if (known := self.types.get(sql)) is None:
            prepared = await connection.prepare(sql)
            kinds = prepared.get_parameters()
            # -1: otherwise bpchar becomes `character`, which truncates to one character.
            names = await connection.fetchval(
                "SELECT array_agg(format_type(o, -1) ORDER BY n) "
                "FROM unnest($1::oid[]) WITH ORDINALITY AS t(o, n)",
                [kind.oid for kind in kinds],
            )
            arrays = [kind.kind == "array" for kind in kinds]
            if len(self.types) >= STATEMENTS:
                self.types.clear()
            known = self.types[sql] = tuple(zip(names or (), arrays, strict=True))
        return known


class PostgresPools:
    """Opens a pool when a task first uses its database, and reuses it.

    An idle pool is closed: its password may have changed, or the tenant may be gone.
    """

    def __init__(self, credentials: Credentials, *, max_connections: int = MAX_CONNECTIONS) -> None:
        self._credentials, self._max = credentials, max_connections
        self._open: dict[str, PooledDatabase] = {}
        self._opening = asyncio.Lock()

    async def database(
        self, config: Config, tenant_id: str, organization_id: str
    ) -> PooledDatabase:
        """Return the database of `dsn`, or of the credential `auth`.

        Raises:
            BadConfig: neither is given, or it is not valid.
            UnknownCredential: the credential does not exist.
        """
        dsn = await self._dsn(config, tenant_id, organization_id)
        now = asyncio.get_running_loop().time()
        if (found := self._open.get(dsn)) is None:
            async with self._opening:
                self._close_unused(now)
                if (found := self._open.get(dsn)) is None:
                    found = self._open[dsn] = PooledDatabase(
                        await self._pool(dsn),
                        target_of(config),
                        free=asyncio.Semaphore(self._max),
                    )
        found.asked_at = now
        return found

    async def _dsn(self, config: Config, tenant_id: str, organization_id: str) -> str:
        given, name = config.get("dsn"), config.get("auth") or config.get("credential")
        if isinstance(given, str):
            return given
        if given is not None:
            raise BadConfig(NOT_POSTGRES)
        if not isinstance(name, str):
            raise BadConfig("a postgres task needs 'auth', the name of a credential, or 'dsn'")
        return dsn_of(await self._credentials.find(tenant_id, organization_id, name))

    def _close_unused(self, now: float) -> None:
        for dsn, database in list(self._open.items()):
            is_idle = database.pool.get_size() == database.pool.get_idle_size()
            if is_idle and now - database.asked_at > UNUSED_S:
                del self._open[dsn]
                database.pool.terminate()

    async def close(self) -> None:
        """Close every pool."""
        for database in self._open.values():
            database.pool.terminate()
        self._open.clear()

    async def _pool(self, dsn: str) -> asyncpg.Pool:
        """Create a pool, which connects when it is first used."""
        check_dsn(dsn)
        try:
            return await asyncpg.create_pool(
                dsn,
                min_size=0,
                max_size=self._max,
                timeout=10,
                init=_prepare_connection,
                reset=_leave_as_it_is,
                server_settings={"application_name": "streams-worker"},
            )
        except (ValueError, asyncpg.InterfaceError) as error:
            raise BadConfig(f"the connection string cannot be used: {error}") from error


async def _leave_as_it_is(_connection: asyncpg.Connection) -> None:
    """Skip the reset's round trip; `PooledDatabase.connection` resets where necessary."""


async def _prepare_connection(connection: asyncpg.Connection) -> None:
    codecs: tuple[tuple[str, Callable[[str], Json]], ...] = (
        ("json", exact_json.loads),
        ("jsonb", exact_json.loads),
        ("interval", str),
    )
    for name, read in codecs:
        await connection.set_type_codec(
            name, schema="pg_catalog", encoder=str, decoder=read, format="text"
        )
