"""Sources of `artifact put`: URLs and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING

from streams.errors import Refused
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Credentials
from streams.worker.sinks.sink_folder import below
from streams.worker.tools.http.auth import authorization
from streams.worker.tools.task_config import mapping, request_name, seconds, text

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

OCTETS = "application/octet-stream"
MOST_BYTES = 16 << 30
"""The most one task may put: it is buffered in a file on the worker's machine."""
DOWNLOAD_S, CONNECT_S, SILENCE_S = 3600.0, 30.0, 120.0
_PIECE_BYTES = 1 << 18


class SourceUnavailable(Refused):
    """The URL or the file cannot be read."""


@dataclass(frozen=True, slots=True)
class ByteSource:
    """A stream of bytes, and its content type."""

    pieces: AsyncIterator[bytes]
    media_type: str


class Downloads:
    """Downloads URLs, with the HTTP client that the payload store uses anyway."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(self, config: Config, call: Call) -> AsyncIterator[ByteSource]:
        """Request `url`, by default with GET, and stream the response's body.

        Raises:
            SourceUnavailable: there is no response, it is an error, or it is cut off.
            BadConfig, UnknownCredential: the configuration is not valid.
        """
        name, url = request_name(config), _address(config)
        headers = {name: str(value) for name, value in mapping(config, "headers").items()}
        login: dict[str, str] = {}
        if config.get("auth") is not None:
            login = await authorization(self._credentials, config["auth"], call)
        import aiohttp  # a tenth of a second that most workers do not need

        limit = aiohttp.ClientTimeout(
            total=seconds(config, call, DOWNLOAD_S), sock_connect=CONNECT_S, sock_read=SILENCE_S
        )
        try:
            method = str(config.get("method") or "GET").upper()
            asking = self._opened().request(
                *(method, url),
                headers=headers | login,
                timeout=limit,
                middlewares=(_staying(login),),
            )
            async with asking as answer:
                if answer.status >= 400:
                    raise SourceUnavailable(f"{name} answered {answer.status}; nothing was stored")
                pieces = _bounded(answer.content.iter_chunked(_PIECE_BYTES), name)
                yield ByteSource(pieces, answer.headers.get("Content-Type", OCTETS))
        except TimeoutError as error:
            why = "timed out; set a longer `timeout`"
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
            import aiohttp

            # No cookies: rows must not share them.
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": "noetl-streams"}
            )
        return self._session


def _staying(secret: Collection[str]) -> aiohttp.ClientMiddlewareType:
    """Return middleware that drops these headers after a redirect to another origin."""
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
    from yarl import URL

    url = text(config, "url")
    try:
        found = URL(url)
    except ValueError as error:
        raise BadConfig(f"'url': {error}") from error
    if found.scheme not in ("http", "https") or not found.host:
        raise BadConfig(f"'url' must begin with http:// or https://: {url[:80]!r}")
    return found


def from_file(folder: Path | None, config: Config) -> ByteSource:
    """Stream a file below the sink folder.

    Raises:
        BadConfig: its name leads out of the folder, or it does not exist.
    """
    name = text(config, "file")
    place = below(folder, name)
    if not place.is_file():
        raise BadConfig(f"{name!r} does not exist below the sink folder")

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
