"""Text of a task's `script`: inline, from a file, a URL, S3 or Google Cloud Storage."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Credentials
from streams.worker.sinks.port import SinkEnvironment, SinkJob
from streams.worker.tools.download import Downloads
from streams.worker.tools.task_config import mapping, text

SCRIPT_BYTES = 4 * 1024 * 1024
SOURCES = ("inline", "file", "http", "s3", "gcs")
_REQUEST = ("method", "headers", "auth", "timeout")
_STORE = ("bucket", "region", "endpoint")


class Scripts:
    """Reads `script: {uri, source: {type, …}}`.

    A file is relative to the worker's working directory; `s3://bucket/key` and
    `gs://bucket/key` are read with the credential `source.auth`.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._downloads = Downloads(credentials)

    async def read(self, config: Config, call: Call) -> str:
        """Return the script's text.

        Raises:
            BadConfig, UnknownCredential, SourceUnavailable, SinkRefused: it cannot be read.
            TargetUnavailable: the object store cannot be reached.
        """
        script = mapping(config, "script")
        source = mapping(script, "source")
        kind = str(source.get("type") or _kind_of(str(script.get("uri") or "")))
        if kind == "inline":
            return text({"code": source.get("code") or script.get("code")}, "code")
        uri = str(script.get("uri") or "")
        if kind == "http":
            content = await self._requested(uri, source, call)
        elif kind == "file":
            content = await asyncio.to_thread(_from_file, uri)
        elif kind in ("s3", "gcs"):
            content = await self._object(kind, uri, source, call)
        else:
            raise BadConfig(f"script.source.type is {kind!r}, not one of {', '.join(SOURCES)}")
        return _decoded(content, uri)

    async def close(self) -> None:
        """Close the connections."""
        await self._downloads.close()

    async def _requested(self, uri: str, source: Config, call: Call) -> bytes:
        config: dict[str, Json] = {name: source[name] for name in _REQUEST if name in source}
        config["url"] = _address(uri, source)
        content = bytearray()
        async with self._downloads.open(config, call) as opened:
            async for piece in opened.pieces:
                content += piece
                if len(content) > SCRIPT_BYTES:
                    raise _too_large(uri)
        return bytes(content)

    async def _object(self, kind: str, uri: str, source: Config, call: Call) -> bytes:
        from streams.worker.sinks.object_store import GcsDriver, S3Driver

        secret: Mapping[str, str] = {}
        if source.get("auth") is not None:
            name = text(source, "auth")
            secret = await self._credentials.find(call.tenant_id, call.organization_id, name)
        spec: dict[str, Json] = {name: source[name] for name in _STORE if name in source}
        address = urlsplit(uri)
        if address.netloc:
            spec["bucket"] = address.netloc
        spec["key"] = (address.path if address.netloc else uri).lstrip("/")
        job = SinkJob(storage=kind, mode="read", call=call, spec=spec, secret=secret)
        around = SinkEnvironment(credentials=self._credentials, deployment="", folder=None)
        driver = S3Driver(around) if kind == "s3" else GcsDriver(around)
        try:
            return await driver.read(job, SCRIPT_BYTES)
        finally:
            await driver.close()


def _kind_of(uri: str) -> str:
    """Return the type of source that a script's URI implies."""
    known = {"http": "http", "https": "http", "s3": "s3", "gs": "gcs"}
    return known.get(urlsplit(uri).scheme, "file" if uri else "inline")


def _address(uri: str, source: Config) -> str:
    """Return the URL: `endpoint`, which a trailing slash makes the folder of `uri`."""
    endpoint = source.get("endpoint")
    if endpoint is None:
        return uri
    address = str(endpoint)
    return urljoin(address, uri) if address.endswith("/") else address


def _from_file(uri: str) -> bytes:
    path = Path(uri.removeprefix("file://"))
    try:
        if path.stat().st_size > SCRIPT_BYTES:
            raise _too_large(uri)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadConfig(
            f"the script {uri!r} cannot be read in {Path.cwd()}: {why}; a file is relative to the "
            "worker's working directory"
        ) from error


def _decoded(content: bytes, uri: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadConfig(f"the script {uri!r} is not UTF-8: {error}") from error


def _too_large(uri: str) -> BadConfig:
    return BadConfig(f"the script {uri!r} has more than {SCRIPT_BYTES} bytes")
