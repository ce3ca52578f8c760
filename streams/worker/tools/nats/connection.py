"""Connections to NATS servers, and the meaning of their errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import nats.errors as client_errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js import errors as js_errors

from streams.errors import Refused
from streams.worker.attempt.secrets import concealed
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.clients import Clients
from streams.worker.tools.nats.login import NatsLogin

CONNECT_S = 5
_AWAY = (
    client_errors.TimeoutError,
    client_errors.NoServersError,
    client_errors.NoRespondersError,
    client_errors.ConnectionClosedError,
    client_errors.StaleConnectionError,
    js_errors.ServiceUnavailableError,
    TimeoutError,
    OSError,
)
_NOT_VALID = (
    client_errors.BadSubjectError,
    client_errors.BadHeaderError,
    js_errors.InvalidKeyError,
    js_errors.InvalidBucketNameError,
    js_errors.InvalidObjectNameError,
)


class NatsRefused(Refused):
    """The server rejects an operation; `code` is the kind of error."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Connection:
    """One connection, opened by its first use and again after it was lost.

    The client's own reconnect is off: it would send what a failed call had buffered, after the
    attempt that made the call has ended.
    """

    def __init__(self, login: NatsLogin) -> None:
        self._login, self._lock = login, asyncio.Lock()
        self._client: Client | None = None

    async def client(self) -> Client:
        """Return the open connection."""
        async with self._lock:
            if self._client is None or not self._client.is_connected:
                self._client = await _connected(self._login)
            return self._client

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.close()


class NatsConnections:
    """Connections of a worker, one for each login."""

    def __init__(self) -> None:
        self._clients = Clients[_Connection](_Connection.close)

    @asynccontextmanager
    async def use(self, login: NatsLogin, timeout_s: float) -> AsyncIterator[JetStreamContext]:
        """Yield JetStream of a server; an operation in the context may take `timeout_s`.

        Raises:
            BadConfig: the address, a name or a header is not valid.
            NatsRefused: the server rejects the login or the operation.
            TargetUnavailable: the server cannot be reached, or does not answer in time.
        """
        key = (login.url, login.user, login.password, login.token)
        with _translated(login):
            async with self._clients.use(key, lambda: _Connection(login)) as connection:
                client = await connection.client()
                async with asyncio.timeout(timeout_s):
                    yield client.jetstream(timeout=timeout_s)

    async def close(self) -> None:
        """Close all connections."""
        await self._clients.close()


async def _connected(login: NatsLogin) -> Client:
    client = Client()
    try:
        await client.connect(
            servers=[one.strip() for one in login.url.split(",")],
            user=login.user,
            password=login.password,
            token=login.token,
            name="noetl-streams",
            allow_reconnect=False,
            max_reconnect_attempts=1,  # also limits the tries of the first connect
            reconnect_time_wait=0,
            connect_timeout=CONNECT_S,
            error_cb=_ignored,  # the call that meets the error reports it
        )
    except BaseException as error:
        await client.close()
        if "authorization violation" in str(error).lower():
            raise client_errors.AuthorizationError from error
        raise
    return client


async def _ignored(_error: Exception) -> None:
    """Do nothing."""


@contextmanager
def _translated(login: NatsLogin) -> Iterator[None]:
    where = login.url.rsplit("@", 1)[-1]
    try:
        yield
    except client_errors.AuthorizationError as error:
        raise NatsRefused("auth", f"{where} rejects the login of the credential") from error
    except js_errors.NoStreamResponseError as error:
        why = f"{where}: no stream takes this subject, or the bucket does not exist"
        raise NatsRefused("notfound", f"{why}; create it, as with `nats kv add`") from error
    except _AWAY as error:
        what = f"NATS at {where}: {_said(error)}"
        raise TargetUnavailable(f"{what}; retrying") from error
    except _NOT_VALID as error:
        raise BadConfig(_said(error)) from error
    except client_errors.MaxPayloadError as error:
        raise NatsRefused("too_large", f"{where}: {_said(error)}") from error
    except js_errors.NotFoundError as error:
        raise NatsRefused("notfound", f"{where}: {_said(error)}") from error
    except client_errors.Error as error:
        raise NatsRefused("refused", f"{where}: {_said(error)}") from error
    except ValueError as error:  # of the address
        raise BadConfig(f"the NATS server's address is not valid: {_said(error)}") from error


def _said(error: BaseException) -> str:
    description = getattr(error, "description", None) or str(error) or type(error).__name__
    return concealed(str(description)).removeprefix("nats: ")[:300]
