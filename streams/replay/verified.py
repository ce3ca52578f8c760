"""Events of a root, each verified before it is given out: its checksum and its link."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC
from typing import NamedTuple

from streams.errors import PoisonRecord
from streams.events.codec import Codec
from streams.events.model import Assigned, Event, Root
from streams.replay.errors import TamperedLog
from streams.replay.port import NO_CHAIN, StoredEvent, StoredPages
from streams.schema.registry import UnknownSchemaId

PAGE = 2000


class ChainLink(NamedTuple):
    """A place in a root, and the chain there."""

    seq: int = 0
    chain: bytes = NO_CHAIN


BEGIN = ChainLink()


class _Page(NamedTuple):
    stored: Sequence[StoredEvent]
    surely_match: Sequence[bool]


class VerifiedLog:
    """Reads a root's events page by page; the next page is fetched while one is used."""

    def __init__(self, log: StoredPages, codec: Codec) -> None:
        self._log, self._codec = log, codec

    async def pages(
        self, root: Root, *, after: ChainLink = BEGIN, through_seq: int
    ) -> AsyncIterator[list[Event]]:
        """Yield verified events after one place up to another.

        Raises:
            TamperedLog: an event is not what was appended, or one is missing.
            Unavailable: the log cannot be read; reading again is safe.
        """
        link = after
        coming = self._request(root, link.seq, through_seq)
        try:
            while link.seq < through_seq:
                page = await coming
                if not page.stored:
                    raise TamperedLog(root, link.seq + 1, None, "the event is missing")
                last = page.stored[-1].seq
                if last < through_seq:
                    coming = self._request(root, last, through_seq)
                events, link = await self._verify(root, link, page)
                yield events
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def one(self, root: Root, seq: int) -> Event:
        """Return one event; its checksum is verified, its link in the chain is not.

        Raises:
            TamperedLog, Unavailable: as for `pages`.
        """
        page = await self._page(root, seq - 1, seq)
        if not page.stored:
            raise TamperedLog(root, seq, None, "the event is missing")
        return await self._decoded(root, page.stored[0], is_match=page.surely_match[0])

    def _request(self, root: Root, after_seq: int, through_seq: int) -> asyncio.Task[_Page]:
        return asyncio.ensure_future(self._page(root, after_seq, through_seq))

    async def _page(self, root: Root, after_seq: int, through_seq: int) -> _Page:
        stored = await self._log.page(
            root, after_seq=after_seq, through_seq=through_seq, limit=PAGE
        )
        envelopes = [one.envelope for one in stored]
        return _Page(stored, await asyncio.to_thread(self._codec.surely_match, envelopes))

    async def _verify(
        self, root: Root, link: ChainLink, page: _Page
    ) -> tuple[list[Event], ChainLink]:
        events = []
        seq, chain = link
        plain = self._codec.stored_events(page.stored)
        for one, is_match, found in zip(page.stored, page.surely_match, plain, strict=True):
            seq += 1
            if one.seq != seq:
                raise TamperedLog(root, seq, None, "the event is missing")
            if found is None or not is_match or found.root != root:
                found = await self._decoded(root, one, is_match=is_match)  # noqa: PLW2901
            events.append(found)
            chain = hashlib.sha256(chain + one.checksum).digest()
            if chain != one.chain:
                raise TamperedLog(root, seq, one.position, "its chain does not follow")
        return events, ChainLink(seq, chain)

    async def _decoded(self, root: Root, one: StoredEvent, *, is_match: bool) -> Event:
        try:
            await self._codec.learn(one.envelope)
            event = self._codec.decode(one.envelope, _assigned(one))
            is_match = is_match or self._codec.verify(one.envelope)
        except (PoisonRecord, UnknownSchemaId) as error:
            raise TamperedLog(root, one.seq, one.position, str(error)) from error
        if not is_match or event.checksum != one.checksum.hex():
            raise TamperedLog(root, one.seq, one.position, "it does not match its checksum")
        if event.root != root:
            raise TamperedLog(root, one.seq, one.position, f"it belongs to {event.root}")
        return event


def _assigned(one: StoredEvent) -> Assigned:
    return Assigned(
        seq=one.seq,
        position=one.position,
        stream_version=one.stream_version,
        ingest_time=one.ingest_time.replace(tzinfo=UTC),
        chain=one.chain.hex(),
    )
