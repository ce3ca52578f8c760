"""Payloads that are named only inside other payloads, such as artifacts in a frame's rows."""

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
_ASKED_AT_ONCE = 5000
_READ_AT_ONCE = 8
_READ_AGAIN_S = 0.05
_ANY_LENGTH = 1 << 62


@dataclass(frozen=True, slots=True)
class Reached:
    """What live payloads lead to."""

    live: set[str]
    sure: set[str] = field(default_factory=set)
    """Those that a payload names for certain."""
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
    """Return what is live because live payloads name it, and those that could not be read.

    `holders` has the live payloads, each with the root that names it, or MANY. What has expired
    in a root (`over`) is not kept by a payload that this root alone names, such as the input of
    a step. A payload is read once in its life, since what it names is remembered; to `verify`
    is to read all of them again.
    """
    reached, there = Reached(set(holders)), frozenset(present)
    ahead = reached.live & there
    while ahead:
        found: set[str] = set()
        keys = sorted(ahead)
        for at in range(0, len(keys), _ASKED_AT_ONCE):
            some = keys[at : at + _ASKED_AT_ONCE]
            if verify:
                await ledger.forget(some)
            known = dict(await ledger.links(some))
            new = await _read_all(shelves, [key for key in some if key not in known], there)
            await ledger.remember(new)
            known |= new
            reached.unreadable.update(set(some) - known.keys())
            for key, names in known.items():
                gone = {
                    link for link in names.links if holders.get(key, MANY) in over.get(link, ())
                }
                found |= names.links - gone
                reached.sure.update(names.sure - gone)
        ahead = (found - reached.live) & there
        reached.live.update(found)
    return reached


async def _read_all(shelves: Shelves, keys: list[str], there: Set[str]) -> dict[str, Names]:
    """Read payloads, a few at a time; those that cannot be read are left out."""
    links: dict[str, Names] = {}
    for at in range(0, len(keys), _READ_AT_ONCE):
        few = keys[at : at + _READ_AT_ONCE]
        read = await asyncio.gather(*(_read(shelves, key, there) for key in few))
        links |= {key: found for key, found in zip(few, read, strict=True) if found is not None}
    return links


async def _read(shelves: Shelves, key: str, there: Set[str]) -> Names | None:
    """Return the keys that a payload names; None where it cannot be read, tried twice.

    A server that writes in place may show an object that is just being replaced by the same.
    """
    for pause in (_READ_AGAIN_S, 0.0):
        for place in (key, trash_key(key)):
            try:
                return await names_in(shelves, place, there, NoCipher())
            except (NoSuchObject, BadBlock):
                continue
        await asyncio.sleep(pause)
    return None


async def names_in(shelves: Shelves, place: str, there: Set[str], cipher: Cipher) -> Names:
    """Read one payload, a piece at a time, and return the keys it names.

    Raises:
        NoSuchObject: it is not there.
        BadBlock: it is damaged.
    """
    tenant, organization, _, digest = place.split("/")
    reader = _Reader(f"{tenant}/{organization}/", there)
    unpacker = Unpacker(Scope(tenant, organization), _ANY_LENGTH, cipher)
    async with aclosing(shelves.stream(place)) as pieces:
        async for piece in pieces:
            await asyncio.to_thread(reader.take, unpacker.feed(piece))
    reader.take(unpacker.finish())
    return reader.names(digest)


class _Reader:
    """Hashes a payload and looks for names in it, a block at a time.

    What stands without the word `sha256` before it is a name if it is that of an object there.
    """

    def __init__(self, folder: str, there: Set[str]) -> None:
        self._folder, self._there = folder, there
        self._links: set[str] = set()
        self._sure: set[str] = set()
        self._digest, self._before = sha256(), b""

    def take(self, blocks: Iterable[bytes]) -> None:
        prefix = f"{self._folder}sha256/"
        for block in blocks:
            self._digest.update(block)
            seen = self._before + block
            self._links.update([prefix + digest for digest in digests_in(seen)])
            self._sure.update([prefix + digest for digest in located_in(seen, self._folder)])
            self._links.update(bare_in(seen, prefix, self._there))
            self._before = seen[-LONGEST_NAME:]

    def names(self, digest: str) -> Names:
        """Return what was found, if it was found in what the key names."""
        if (found := self._digest.hexdigest()) != digest:
            raise BadBlock(f"the stored payload has the digest {found}")
        return Names(frozenset(self._links), frozenset(self._sure))
