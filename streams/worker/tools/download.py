"""Where `artifact put` gets bytes from that no event could carry: an address, or a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path

from pyreqwest.exceptions import PyreqwestError

from streams.errors import Refused
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config
from streams.worker.sinks.place import below
from streams.worker.tools.failure import text
from streams.worker.tools.http import HttpTool, request_name, why

OCTETS = "application/octet-stream"
MOST_BYTES = 16 << 30
"""What one task may put: it goes through a file of the worker's machine."""
DOWNLOAD_S = 3600.0
_PIECE_BYTES = 1 << 20


class NoSource(Refused):
    """The address or the file does not give what it should."""


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes as they come, and what their giver says they are."""

    pieces: AsyncIterator[bytes]
    media_type: str


@asynccontextmanager
async def from_url(http: HttpTool, config: Config, call: Call) -> AsyncIterator[Source]:
    """Ask for `url`, as the http tool would, and give the answer's body as it comes.

    Raises:
        NoSource: there is no answer, it is an error, or it breaks off.
        BadConfig, UnknownCredential: the task describes no request.
    """
    name = request_name(config)
    try:
        request = await http.request({"timeout": DOWNLOAD_S, **config}, call)
    except ValueError as error:
        raise BadConfig(f"{name}: {error}") from error
    try:
        async with request as answer:
            if answer.status >= 400:
                raise NoSource(f"{name} answered {answer.status}; nothing was stored")

            async def pieces() -> AsyncIterator[bytes]:
                while piece := await answer.body_reader.read_chunk():
                    yield bytes(piece)

            yield Source(_bounded(pieces(), name), answer.get_header("content-type") or OCTETS)
    except TimeoutError as error:
        raise NoSource(f"{name}: not done in time; give it a longer `timeout`") from error
    except (PyreqwestError, OSError) as error:
        raise NoSource(f"{name}: {why(error)}; nothing was stored") from error


def from_file(folder: Path | None, config: Config) -> Source:
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
            raise NoSource(f"{name}: {error.strerror or error}") from error

    return Source(_bounded(pieces(), name), guess_type(name)[0] or OCTETS)


async def _bounded(pieces: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    length = 0
    async for piece in pieces:
        length += len(piece)
        if length > MOST_BYTES:
            raise NoSource(f"{name} has more than {MOST_BYTES} bytes; put it in parts")
        yield piece
