"""Result tiers: quick or queryable copies of what the payload store has, never the only ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from streams.errors import StreamsError, Unavailable
from streams.events.model import PayloadRef
from streams.payload.content import check
from streams.payload.errors import PayloadCorrupt

SWEEP_S = 600.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A result on its way into a tier: the bytes, and what they are the result of."""

    uri: str
    execution_id: int
    step: str
    task: str
    payload: PayloadRef
    data: bytes
    expires_at: datetime | None = None


class CopyFailed(Unavailable):
    """A tier cannot keep or give a copy now; the payload store can."""


class ResultTier(Protocol):
    """Keeps copies of results, at most until they end. It may lose any of them at any time."""

    async def put(self, copy: Copy) -> None:
        """Keep a copy; the same one twice is harmless.

        Raises:
            CopyFailed: it cannot be kept, which is no matter.
        """
        ...

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes behind `ref`, or None where there is no copy.

        Raises:
            CopyFailed: the tier cannot be asked.
        """
        ...

    async def delete(self, ref: PayloadRef) -> None:
        """Forget a copy; harmless where there is none."""
        ...

    async def sweep(self) -> None:
        """Forget the copies whose end has come.

        Raises:
            CopyFailed: the tier cannot be asked.
        """
        ...


@dataclass(slots=True)
class Copies:
    """The tiers there are, by store kind; a kind without one lives in the payload store alone."""

    tiers: Mapping[str, ResultTier] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)
    misses: dict[str, int] = field(default_factory=dict)

    def snapshot(self) -> dict[str, dict[str, int]]:
        """Return how often each tier answered, and how often the payload store had to."""
        return {"hits": dict(self.hits), "misses": dict(self.misses)}

    async def put(self, kind: str, copy: Copy) -> None:
        """Keep a copy where there is a tier for it; a tier that cannot is passed over."""
        if (tier := self.tiers.get(kind)) is None:
            return
        try:
            await tier.put(copy)
        except StreamsError as error:
            _log.warning("no copy of %s in %s: %s", copy.uri, kind, error)

    async def get(self, kind: str, ref: PayloadRef) -> bytes | None:
        """Return a checked copy, or None: then the payload store has it."""
        if (tier := self.tiers.get(kind)) is None:
            return None
        try:
            data = await tier.get(ref)
            found = None if data is None else await _checked(tier, ref, data)
        except StreamsError as error:
            _log.warning("%s: no use of its copy in %s: %s", ref.uri, kind, error)
            found = None
        counted = self.misses if found is None else self.hits
        counted[kind] = counted.get(kind, 0) + 1
        return found

    @asynccontextmanager
    async def tended(self) -> AsyncIterator[Copies]:
        """Sweep the tiers now and then while the body runs, and at once: it was off for a time."""
        tending = asyncio.create_task(self._tend())
        try:
            yield self
        finally:
            tending.cancel()
            await asyncio.gather(tending, return_exceptions=True)

    async def _tend(self) -> None:
        while True:
            for kind, tier in self.tiers.items():
                try:
                    await tier.sweep()
                except StreamsError as error:
                    _log.warning("copies in %s are not swept: %s", kind, error)
            await asyncio.sleep(SWEEP_S)


async def _checked(tier: ResultTier, ref: PayloadRef, data: bytes) -> bytes:
    try:
        return check(ref, data)
    except PayloadCorrupt:
        await tier.delete(ref)  # it would be read, and found out, again and again
        raise
