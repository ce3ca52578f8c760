"""Where `artifact put` gets bytes from that no event could carry: an address, or a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path

import aiohttp
from yarl import URL

from streams.errors import Refused
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Credentials
from streams.worker.sinks.sink_folder import below
from streams.worker.tools.http.auth import authorization
from streams.worker.tools.task_config import mapping, request_name, seconds, text

OCTETS = "application/octet-stream"
MOST_BYTES = 16 << 30
"""What one task may put: it goes through a file of the worker's machine."""
DOWNLOAD_S, CONNECT_S, SILENCE_S = 3600.0, 30.0, 120.0
_PIECE_BYTES = 1 << 18


class SourceUnavailable(Refused):
    """The address or the file does not give what it should."""


@dataclass(frozen=True, slots=True)
class ByteSource:
    """Bytes as they come, and what their giver says they are."""

    pieces: AsyncIterator[bytes]
    media_type: str


class Downloads:
    """Asks for addresses with the client that the payload store uses anyway, which is small."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(self, config: Config, call: Call) -> AsyncIterator[ByteSource]:
        """Ask for `url` and give the answer's body as it comes.

        Raises:
            NoSource: there is no answer, it is an error, or it breaks off.
            BadConfig, UnknownCredential: the task describes no request.
        """
        name, url = request_name(config), _address(config)
        headers = {name: str(value) for name, value in mapping(config, "headers").items()}
        login: dict[str, str] = {}
        if config.get("auth") is not None:
            login = await authorization(self._credentials, config["auth"], call)
        limit = aiohttp.ClientTimeout(
            total=seconds(config, call, DOWNLOAD_S), sock_connect=CONNECT_S, sock_read=SILENCE_S
        )
        try:
            asking = self._opened().get(
                url, headers=headers | login, timeout=limit, middlewares=(_staying(login),)
            )
            async with asking as answer:
                if answer.status >= 400:
                    raise SourceUnavailable(f"{name} answered {answer.status}; nothing was stored")
                pieces = _bounded(answer.content.iter_chunked(_PIECE_BYTES), name)
                yield ByteSource(pieces, answer.headers.get("Content-Type", OCTETS))
        except TimeoutError as error:
            why = "not done in time; give it a longer `timeout`"
            raise SourceUnavailable(f"{name}: {why}; nothing was stored") from error
        except (aiohttp.InvalidURL, ValueError) as error:
            raise BadConfig(f"{name}: {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            why = str(error) or type(error).__name__
            raise SourceUnavailable(f"{name}: {why}; nothing was stored") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # No cookies: rows must not see each other's.
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": "noetl-streams"}
            )
        return self._session


def _staying(secret: Collection[str]) -> aiohttp.ClientMiddlewareType:
    """Return what drops these headers once a redirect has led to another origin."""
    origins = set()

    async def drop(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        origins.add(request.url.origin())
        if len(origins) > 1:
            for name in secret:
                request.headers.popall(name, None)
        return await handler(request)

    return drop


def _address(config: Config) -> URL:
    url = text(config, "url")
    try:
        found = URL(url)
    except ValueError as error:
        raise BadConfig(f"'url': {error}") from error
    if found.scheme not in ("http", "https") or not found.host:
        raise BadConfig(f"'url' is no address that begins with http:// or https://: {url[:80]!r}")
    return found


def from_file(folder: Path | None, config: Config) -> ByteSource:
    """Give a file that lies below the deployment's folder for files.

    Raises:
        BadConfig: its name leads elsewhere, or there is no such file.
    """
    name = text(config, "file")
    place = below(folder, name)
    if not place.is_file():
        raise BadConfig(f"{name!r}: there is no such file below the folder of sinks")

    async def pieces() -> AsyncIterator[bytes]:
        try:
            with place.open("rb") as file:
                while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
                    yield piece
        except OSError as error:
            raise SourceUnavailable(f"{name}: {error.strerror or error}") from error

    return ByteSource(_bounded(pieces(), name), guess_type(name)[0] or OCTETS)


async def _bounded(pieces: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    length = 0
    async for piece in pieces:
        length += len(piece)
        if length > MOST_BYTES:
            raise SourceUnavailable(f"{name} has more than {MOST_BYTES} bytes; put it in parts")
        yield piece
