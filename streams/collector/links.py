"""Payloads referenced only from other payloads, such as artifacts in a frame's rows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Set
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256

from streams.collector.core import LONGEST_NAME, Names, bare_in, digests_in, located_in
from streams.collector.port import CollectorLog
from streams.payload.content import trash_key
from streams.payload.objects.blocks import BadBlock, Cipher, NoCipher, Unpacker
from streams.payload.objects.port import NoSuchObject, Shelves
from streams.payload.port import Scope

MANY = 0
"""Stands for more than one root, or for another payload."""
_LOOKUP_BATCH = 5000
_READ_BATCH = 8
_RETRY_PAUSE_S = 0.05
_ANY_LENGTH = 1 << 62


@dataclass(frozen=True, slots=True)
class Reached:
    """Payloads that are reachable from live ones."""

    live: set[str]
    sure: set[str] = field(default_factory=set)
    """Those that are certainly payload references."""
    unreadable: set[str] = field(default_factory=set)


async def follow(
    ledger: CollectorLog,
    shelves: Shelves,
    holders: Mapping[str, int],
    over: Mapping[str, set[int]],
    present: Collection[str],
    *,
    verify: bool = False,
) -> Reached:
    """Return the payloads reachable from live ones, and those that could not be read.

    `holders` maps each live payload to the root that references it, or MANY. A payload that
    only one root references, such as the input of a step, does not keep alive what expired in
    that root (`over`). Each payload is read once and its links are stored; `verify` reads all
    of them again.
    """
    reached, present = Reached(set(holders)), frozenset(present)
    pending = reached.live & present
    while pending:
        found: set[str] = set()
        keys = sorted(pending)
        for at in range(0, len(keys), _LOOKUP_BATCH):
            batch = keys[at : at + _LOOKUP_BATCH]
            if verify:
                await ledger.delete_links(batch)
            known = dict(await ledger.links(batch))
            new = await _read_all(shelves, [key for key in batch if key not in known], present)
            await ledger.store_links(new)
            known |= new
            reached.unreadable.update(set(batch) - known.keys())
            for key, names in known.items():
                gone = {
                    link for link in names.links if holders.get(key, MANY) in over.get(link, ())
                }
                found |= names.links - gone
                reached.sure.update(names.sure - gone)
        pending = (found - reached.live) & present
        reached.live.update(found)
    return reached


async def _read_all(shelves: Shelves, keys: list[str], present: Set[str]) -> dict[str, Names]:
    """Read payloads concurrently; those that cannot be read are omitted."""
    links: dict[str, Names] = {}
    for at in range(0, len(keys), _READ_BATCH):
        few = keys[at : at + _READ_BATCH]
        read = await asyncio.gather(*(_read(shelves, key, present) for key in few))
        links |= {key: found for key, found in zip(few, read, strict=True) if found is not None}
    return links


async def _read(shelves: Shelves, key: str, present: Set[str]) -> Names | None:
    """Return the keys that a payload references; None if it cannot be read in two attempts.

    A server that writes in place may return an object that is just being overwritten.
    """
    for pause in (_RETRY_PAUSE_S, 0.0):
        for stored_key in (key, trash_key(key)):
            try:
                return await names_in(shelves, stored_key, present, NoCipher())
            except (NoSuchObject, BadBlock):
                continue
        await asyncio.sleep(pause)
    return None


async def names_in(shelves: Shelves, stored_key: str, present: Set[str], cipher: Cipher) -> Names:
    """Read one payload, a piece at a time, and return the keys it references.

    Raises:
        NoSuchObject: it does not exist.
        BadBlock: it is damaged.
    """
    tenant, organization, _, digest = stored_key.split("/")
    reader = _Reader(f"{tenant}/{organization}/", present)
    unpacker = Unpacker(Scope(tenant, organization), _ANY_LENGTH, cipher)
    async with aclosing(shelves.stream(stored_key)) as pieces:
        async for piece in pieces:
            await asyncio.to_thread(reader.take, unpacker.feed(piece))
    reader.take(unpacker.finish())
    return reader.names(digest)


class _Reader:
    """Hashes a payload and searches it for references, a block at a time.

    A digest without `sha256` before it counts only if an object with that key exists.
    """

    def __init__(self, folder: str, present: Set[str]) -> None:
        self._folder, self._present = folder, present
        self._links: set[str] = set()
        self._sure: set[str] = set()
        self._digest, self._before = sha256(), b""

    def take(self, blocks: Iterable[bytes]) -> None:
        prefix = f"{self._folder}sha256/"
        for block in blocks:
            self._digest.update(block)
            window = self._before + block
            self._links.update([prefix + digest for digest in digests_in(window)])
            self._sure.update([prefix + digest for digest in located_in(window, self._folder)])
            self._links.update(bare_in(window, prefix, self._present))
            self._before = window[-LONGEST_NAME:]

    def names(self, digest: str) -> Names:
        """Return the references, if the payload matches its digest."""
        if (found := self._digest.hexdigest()) != digest:
            raise BadBlock(f"the stored payload has the digest {found}")
        return Names(frozenset(self._links), frozenset(self._sure))
