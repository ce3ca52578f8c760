"""Port of result tiers: fast or queryable copies, never the only ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from streams.background import in_background
from streams.errors import StreamsError, Unavailable
from streams.events.model import PayloadRef
from streams.metrics.metric import Sample
from streams.metrics.tiers import RESULT_COPIES
from streams.payload.content import check
from streams.payload.errors import PayloadCorrupt

SWEEP_S = 600.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A result to store in a tier: its bytes, and their origin."""

    uri: str
    execution_id: int
    step: str
    task: str
    payload: PayloadRef
    data: bytes
    expires_at: datetime | None = None


class CopyFailed(Unavailable):
    """A tier cannot store or read a copy now; the payload store can."""


class ResultTier(Protocol):
    """Stores copies of results until they expire. It may lose any copy at any time."""

    async def put(self, copy: Copy) -> None:
        """Store a copy; idempotent.

        Raises:
            CopyFailed: it cannot be stored, which callers ignore.
        """
        ...

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes behind `ref`, or None if there is no copy.

        Raises:
            CopyFailed: the tier cannot be reached.
        """
        ...

    async def delete(self, ref: PayloadRef) -> None:
        """Delete a copy, if there is one."""
        ...

    async def sweep(self) -> None:
        """Delete expired copies.

        Raises:
            CopyFailed: the tier cannot be reached.
        """
        ...


@dataclass(slots=True)
class Copies:
    """The tiers by store kind; kinds without a tier are in the payload store alone."""

    tiers: Mapping[str, ResultTier] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)
    misses: dict[str, int] = field(default_factory=dict)

    def snapshot(self) -> dict[str, dict[str, int]]:
        """Return the hits and misses of each tier."""
        return {"hits": dict(self.hits), "misses": dict(self.misses)}

    def samples(self) -> Iterator[Sample]:
        """Yield the hits and misses of each tier."""
        for outcome, counted in (("hit", self.hits), ("miss", self.misses)):
            for kind, count in counted.items():
                yield Sample(RESULT_COPIES, count, (kind, outcome))

    async def put(self, kind: str, copy: Copy) -> None:
        """Store a copy if there is a tier for it; failures are logged."""
        if (tier := self.tiers.get(kind)) is None:
            return
        try:
            await tier.put(copy)
        except StreamsError as error:
            _log.warning("no copy of %s in %s: %s", copy.uri, kind, error)

    async def get(self, kind: str, ref: PayloadRef) -> bytes | None:
        """Return a verified copy, or None: read the payload store then."""
        if (tier := self.tiers.get(kind)) is None:
            return None
        try:
            data = await tier.get(ref)
            found = None if data is None else await _checked(tier, ref, data)
        except StreamsError as error:
            _log.warning("%s: copy in %s not usable: %s", ref.uri, kind, error)
            found = None
        counted = self.misses if found is None else self.hits
        counted[kind] = counted.get(kind, 0) + 1
        return found

    @asynccontextmanager
    async def tended(self) -> AsyncIterator[Copies]:
        """Sweep the tiers periodically while the body runs, starting at once."""
        async with in_background(self._tend()):
            yield self

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
        await tier.delete(ref)  # or every read would verify it in vain
        raise
