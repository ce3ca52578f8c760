"""Pools of connections, one for each database that this process's tasks name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import quote

import asyncpg

from streams.events.model import Json
from streams.postgres import CONNECTION_LOST
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.port import Config, Credentials
from streams.worker.tools import exact_json

MAX_CONNECTIONS = 3
_NOT_POSTGRES = "the connection string does not begin with postgresql://"
ACQUIRE_S = 30.0
UNUSED_S = 600.0
STATEMENTS = 1000
# Resources exhausted, an operator's hand, a system error: not the statement's fault.
_DOWN = ("08", "53", "57", "58")
_NOT_DOWN = frozenset({"57014"})  # a statement that was cancelled


@dataclass(slots=True)
class PooledDatabase:
    """One database: its pool, what was learnt of its statements, whether fences can be kept."""

    pool: asyncpg.Pool
    name: str
    types: dict[str, tuple[tuple[str, bool], ...]] = field(default_factory=dict)
    has_fences: bool = False
    asked_at: float = 0.0
    """When a task last named it, on the loop's clock."""

    @asynccontextmanager
    async def connection(self, *, tidy: bool = False) -> AsyncIterator[asyncpg.Connection]:
        """Lend a connection; with `tidy`, its settings are put back afterwards.

        Raises:
            BadConfig: the connection string can never be used.
            TargetUnavailable: the database is down, or went down meanwhile.
        """
        try:
            connection = await self.pool.acquire(timeout=ACQUIRE_S)
        except asyncpg.ClientConfigurationError as error:
            raise BadConfig(f"the connection string cannot be used: {error}") from error
        except (ValueError, OverflowError):
            # Without its words: what is read as a port or a name may be half a password.
            raise BadConfig(_UNREADABLE) from None
        except CONNECTION_LOST as error:  # a connect that takes too long is an OSError as well
            raise self._down(error) from error
        try:
            yield connection
        except TimeoutError:
            raise  # the statement's own time was up
        except asyncpg.PostgresError as error:
            code = error.sqlstate or ""
            if code[:2] == "42":
                self.types.clear()  # a table may have been made anew, with other types
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
        return TargetUnavailable(f"database {self.name}: {why}; it is asked again")

    async def types_of(
        self, connection: asyncpg.Connection, sql: str
    ) -> tuple[tuple[str, bool], ...]:
        """Return the SQL type of each parameter of `sql`, and whether it is an array."""
        if (known := self.types.get(sql)) is None:
            prepared = await connection.prepare(sql)
            kinds = prepared.get_parameters()
            # -1: without it the name of bpchar would be `character`, which cuts to one letter.
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


_DSN = re.compile(r"postgres(?:ql)?://(?P<who>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_PORT = re.compile(r":([^:,\]]*)(?=,|$)")
_LAST_PORT = 65535
_ESCAPE = (
    "the connection string's login cannot be read; percent-encode what is special in a user or a "
    "password: %23 for #, %2F for /, %3F for ?, %40 for @"
)
_UNREADABLE = (
    "the connection string cannot be read; look at its host, its port and its options, and "
    "percent-encode what is special in its user, its password and its database"
)


class PostgresPools:
    """Opens a database when a task first names it, and keeps it while tasks do.

    One that nobody has named for a while is closed, and its login forgotten: a password may
    have been changed, or the tenant may be gone.
    """

    def __init__(self, credentials: Credentials, *, max_connections: int = MAX_CONNECTIONS) -> None:
        self._credentials, self._max = credentials, max_connections
        self._open: dict[str, PooledDatabase] = {}
        self._opening = asyncio.Lock()

    async def database(
        self, config: Config, tenant_id: str, organization_id: str
    ) -> PooledDatabase:
        """Return the database that `dsn`, or the credential `auth`, names.

        Raises:
            BadConfig: neither is there, or it cannot be used.
            UnknownCredential: there is no such credential.
        """
        dsn = await self._dsn(config, tenant_id, organization_id)
        now = asyncio.get_running_loop().time()
        if (found := self._open.get(dsn)) is None:
            async with self._opening:
                self._close_unused(now)
                if (found := self._open.get(dsn)) is None:
                    found = self._open[dsn] = PooledDatabase(
                        await self._pool(dsn), target_of(config)
                    )
        found.asked_at = now
        return found

    async def _dsn(self, config: Config, tenant_id: str, organization_id: str) -> str:
        given, name = config.get("dsn"), config.get("auth")
        if isinstance(given, str):
            return given
        if given is not None:
            raise BadConfig(_NOT_POSTGRES)
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
        """Make a pool, which connects, and reads `dsn`, when it is first used."""
        _check_dsn(dsn)
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


def _check_dsn(dsn: str) -> None:
    """Refuse what is no connection string, without quoting it.

    Raises:
        BadConfig: it is none.
    """
    found = _DSN.match(dsn)
    if found is None:
        raise BadConfig(_NOT_POSTGRES)
    login, _, hosts = found["who"].rpartition("@")
    is_cut = not login and "@" in found["rest"]  # perhaps inside a login
    if "@" in login or (is_cut and found["rest"].startswith("#")):
        raise BadConfig(_ESCAPE)
    for port in filter(None, _PORT.findall(hosts)):
        if not (port.isascii() and port.isdecimal()):
            raise BadConfig(
                _ESCAPE if is_cut else "the connection string has a port that is not a number"
            )
        if not 0 < int(port) <= _LAST_PORT:
            raise BadConfig(f"the connection string has a port that is not 1 to {_LAST_PORT}")


def target_of(config: Config) -> str:
    """Name the database without telling its secrets."""
    if config.get("dsn") is not None:
        return f"dsn:{sha256(str(config['dsn']).encode()).hexdigest()[:16]}"
    return f"auth:{config.get('auth')}"


def dsn_of(fields: Mapping[str, str]) -> str:
    """Return a credential's connection string, made from its fields where it has none.

    Raises:
        BadConfig: it has neither `dsn` nor `host`.
    """
    if "dsn" in fields:
        return fields["dsn"]
    if "host" not in fields:
        raise BadConfig("the credential for postgres needs 'dsn', or 'host', 'user', 'password' …")
    user = quote(fields.get("user") or fields.get("username") or "", safe="")
    password = quote(fields.get("password", ""), safe="")
    database = quote(fields.get("database") or fields.get("dbname") or user, safe="")
    login = f"{user}:{password}@" if user else ""
    return f"postgresql://{login}{fields['host']}:{fields.get('port', '5432')}/{database}"


async def _leave_as_it_is(_connection: asyncpg.Connection) -> None:
    """Spare the round trip of a reset; `PooledDatabase.connection` does it where it matters."""


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
