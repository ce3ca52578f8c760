"""Objects in S3, Google Cloud Storage and Azure Blob Storage, through obstore.

Its blocking calls are used, in threads: in Python 3.11 a process that used its asynchronous
calls often aborts on exit (docs/decisions/0031-one-s3-client.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import obstore
from obstore.exceptions import BaseError, GenericError, PreconditionError
from obstore.store import ObjectStore, S3Store

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.port import NoSuchObject, ObjectTooLarge, Stat
from streams.payload.objects.presigned import read_range
from streams.payload.objects.ranges import RANGE_BYTES, Range, Replaced, carry, pieces, ranges

if TYPE_CHECKING:
    from obstore import GetOptions

_PART_BYTES, _MOST_PARTS = 5 << 20, 9_000
_PARTS_AT_ONCE = 1
# A separate pool, so that a store that does not answer blocks no other work.
_THREADS = ThreadPoolExecutor(16, thread_name_prefix="objects")
_T = TypeVar("_T")


class CloudObjects:
    """Objects of one bucket or container; large ones are uploaded in parts."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._presigned: S3Store | None = None

    async def write(self, key: str, data: bytes) -> None:
        """Store `data`."""
        await self._put(key, data, len(data))

    async def upload(self, key: str, source: BinaryIO) -> None:
        """Store the content of `source`."""
        length = source.seek(0, 2)
        source.seek(0)
        await self._put(key, source, length)

    async def _put(self, key: str, data: bytes | BinaryIO, length: int) -> None:
        part = max(_PART_BYTES, length // _MOST_PARTS)
        await _ask(
            key,
            lambda: obstore.put(
                self._store, key, data, chunk_size=part, max_concurrency=_PARTS_AT_ONCE
            ),
        )

    async def read(self, key: str, *, at_most: int) -> bytes:
        """Return the object."""
        ask = partial(self._range, key, at_most=at_most)
        return b"".join([part async for part in ranges(key, ask)])

    async def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        """Yield the object in pieces."""
        async for piece in pieces(key, partial(self._range, key)):
            yield piece

    async def _range(
        self, key: str, start: int, tag: str | None, *, at_most: int | None = None
    ) -> Range:
        """Return a range; the first comes from a request for all, which works for empty objects.

        The rest is not sent: the connection is closed.
        """

        def read() -> Range:
            if start and self._presigned is not None:
                return read_range(self._presigned, key, start, tag)
            options: GetOptions = {"range": (start, start + RANGE_BYTES)} if start else {}
            if tag is not None:
                options["if_match"] = tag
            try:
                found = obstore.get(self._store, key, options=options)
            except PreconditionError:
                raise Replaced from None
            except GenericError as error:
                if not (isinstance(self._store, S3Store) and "non-partial" in str(error)):
                    raise
                self._presigned = self._store
                return read_range(self._store, key, start, tag)
            if at_most is not None and (size := found.meta["size"]) > at_most:
                raise ObjectTooLarge(f"{size} bytes, {at_most} are allowed")
            data = next(iter(found.stream(min_chunk_size=RANGE_BYTES)), b"")
            return Range(memoryview(data), found.meta["size"], found.meta["e_tag"])

        return await _ask(key, read)

    async def stat(self, key: str) -> Stat | None:
        """Return an object's metadata."""
        try:
            found = await _ask(key, lambda: obstore.head(self._store, key))
        except NoSuchObject:
            return None
        return Stat(key, found["size"], found["last_modified"])

    async def remove(self, key: str) -> None:
        """Remove the object."""
        try:
            await _ask(key, lambda: obstore.delete(self._store, key))
        except NoSuchObject:
            return

    async def list(self, prefix: str = "") -> AsyncIterator[Stat]:
        """Yield every object below `prefix`."""
        found = await _ask(prefix, lambda: iter(obstore.list(self._store, prefix or None)))
        while (some := await _ask(prefix, lambda: next(found, None))) is not None:
            for one in some:
                yield Stat(one["path"], one["size"], one["last_modified"])

    async def move(self, source: str, target: str) -> None:
        """Move an object to another key."""
        await carry(self, source, target)


async def _ask(what: str, call: Callable[[], _T]) -> _T:
    def ask() -> _T:
        with _trouble(what):
            return call()

    return await asyncio.get_running_loop().run_in_executor(_THREADS, ask)


@contextmanager
def _trouble(what: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
            raise NoSuchObject(what) from None
        why = str(error).partition("\n")[0][:500]
        raise PayloadUnavailable(
            f"{what}: {why}; check that the object store is up and its bucket and keys are right"
        ) from error
