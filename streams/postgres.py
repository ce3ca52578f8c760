"""Translation of Postgres errors, and loading of a package's SQL files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files

import asyncpg

# A timeout is an OSError as well.
CONNECTION_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # raised when the server closes mid-message
    asyncpg.OperatorInterventionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)
NO_ANSWER = (*CONNECTION_LOST, asyncpg.PostgresError)
"""Every error of a query."""


class BoundedConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver is untyped
    """Closes itself when a statement times out.

    The driver would cancel the statement and wait for the server's confirmation, which a
    paused server never sends.
    """

    __slots__ = ()

    async def execute(self, *arguments: object, **options: object) -> object:
        """Execute statements."""
        return await self._bounded(super().execute(*arguments, **options))

    async def executemany(self, *arguments: object, **options: object) -> object:
        """Execute a statement for each row of arguments."""
        return await self._bounded(super().executemany(*arguments, **options))

    async def fetch(self, *arguments: object, **options: object) -> object:
        """Return all rows."""
        return await self._bounded(super().fetch(*arguments, **options))

    async def fetchrow(self, *arguments: object, **options: object) -> object:
        """Return the first row."""
        return await self._bounded(super().fetchrow(*arguments, **options))

    async def fetchval(self, *arguments: object, **options: object) -> object:
        """Return one value of the first row."""
        return await self._bounded(super().fetchval(*arguments, **options))

    async def _bounded(self, call: Awaitable[object]) -> object:
        try:
            return await call
        except TimeoutError:
            self.terminate()
            raise


@contextmanager
def translated(
    unavailable: Callable[[str], Exception],
    action: str,
    *,
    refused: Callable[[asyncpg.PostgresError], Exception | None] | None = None,
    with_values: bool = True,
) -> Iterator[None]:
    """Raise `unavailable` for errors of the statements inside; `action` describes them.

    `refused` may return another error for a statement that Postgres rejects. Without
    `with_values`, the message omits parts of the error that can quote a value.
    """
    try:
        yield
    except CONNECTION_LOST as error:
        why = repr(error) if with_values else type(error).__name__
        raise unavailable(f"Postgres does not answer: {why}; try again") from error
    except asyncpg.PostgresError as error:
        if refused is not None and (other := refused(error)) is not None:
            raise other from error
        why = str(error) if with_values or not error.args else str(error.args[0])
        raise unavailable(
            f"Postgres cannot {action}: {why}; is it migrated (`streams migrate`)?"
        ) from error


@contextmanager
def connecting(unavailable: Callable[[str], Exception]) -> Iterator[None]:
    """Raise `unavailable` when the connection inside cannot be opened."""
    try:
        yield
    except NO_ANSWER as error:
        raise unavailable(
            f"cannot connect to Postgres: {error or type(error).__name__}; "
            "is it up (`streams status`), and are login and database right?"
        ) from error


def queries(package: str) -> Callable[[str], str]:
    """Return a function that reads `sql/<name>.sql` of a package, each file once."""

    @lru_cache
    def query(name: str) -> str:
        return files(package).joinpath(f"sql/{name}.sql").read_text("utf-8")

    return query
