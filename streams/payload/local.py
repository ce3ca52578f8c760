"""Payloads as files below one folder, for a single machine or a shared volume."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from streams.envelope.model import PayloadRef
from streams.payload.content import check, describe, key_of
from streams.payload.errors import PayloadMissing, PayloadUnavailable
from streams.payload.port import Scope


class LocalPayloadStore:
    """Writes a file under a name of its own, then renames it: readers see all of it or none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(
        self,
        scope: Scope,
        data: bytes,
        *,
        media_type: str,
        row_count: int | None = None,
        schema_digest: str | None = None,
    ) -> PayloadRef:
        """Store `data` and return its reference once it is durable."""
        ref = describe(
            scope, data, media_type=media_type, row_count=row_count, schema_digest=schema_digest
        )
        await asyncio.to_thread(self._write, self._path(ref), data)
        return ref

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the bytes behind `ref`, checked against its digest and length."""
        try:
            with _trouble(ref.uri):
                data = await asyncio.to_thread(self._path(ref).read_bytes)
        except FileNotFoundError:
            raise PayloadMissing(ref.uri) from None
        return check(ref, data)

    async def exists(self, ref: PayloadRef) -> bool:
        """Say whether the file is there."""
        return await asyncio.to_thread(self._path(ref).is_file)

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the file; harmless when it is gone."""
        with _trouble(ref.uri):
            await asyncio.to_thread(self._path(ref).unlink, missing_ok=True)

    def _path(self, ref: PayloadRef) -> Path:
        return self._folder / key_of(ref)

    def _write(self, path: Path, data: bytes) -> None:
        with _trouble(str(path)):
            if path.is_file() and path.stat().st_size == len(data):
                return
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
            try:
                _write_durably(unfinished, data)
                unfinished.replace(path)
                _sync_folder(path.parent)
            finally:
                unfinished.unlink(missing_ok=True)


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the rename durable too: it is a change of the folder, not of the file."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _trouble(what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PayloadUnavailable(
            f"{what}: {error.strerror or error}; is the folder mounted and writable?"
        ) from error
