"""Payloads that are named only inside other payloads, such as artifacts in a frame's rows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Set
from contextlib import aclosing

from streams.collector.core import LONGEST_NAME, digests_in, hex_in
from streams.collector.port import Ledger
from streams.payload.blocks import BadBlock, Cipher, NoCipher, Unpacker
from streams.payload.content import trash_key
from streams.payload.objects import NoSuchObject, Shelves
from streams.payload.port import Scope

MANY = 0
"""Stands for more than one root, or for another payload."""
_ASKED_AT_ONCE = 5000
_READ_AT_ONCE = 8
_ANY_LENGTH = 1 << 62


async def follow(
    ledger: Ledger,
    shelves: Shelves,
    holders: Mapping[str, int],
    over: Mapping[str, set[int]],
    present: Collection[str],
) -> tuple[set[str], set[str]]:
    """Return what is live because live payloads name it, and those that could not be read.

    `holders` has the live payloads, each with the root that names it, or MANY. What has expired
    in a root (`over`) is not kept by a payload that this root alone names, such as the input of
    a step. A payload is read once in its life: what it names is remembered.
    """
    reached, unreadable, there = set(holders), set[str](), frozenset(present)
    ahead = reached & there
    while ahead:
        found: set[str] = set()
        keys = sorted(ahead)
        for at in range(0, len(keys), _ASKED_AT_ONCE):
            some = keys[at : at + _ASKED_AT_ONCE]
            known = dict(await ledger.links(some))
            new = await _read_all(shelves, [key for key in some if key not in known], there)
            await ledger.remember(new)
            known |= new
            unreadable |= set(some) - known.keys()
            for key, links in known.items():
                holder = holders.get(key, MANY)
                found |= {link for link in links if holder not in over.get(link, ())}
        ahead = (found - reached) & there
        reached |= found
    return reached, unreadable


async def _read_all(
    shelves: Shelves, keys: list[str], there: Set[str]
) -> dict[str, frozenset[str]]:
    """Read payloads, a few at a time; those that cannot be read are left out."""
    links: dict[str, frozenset[str]] = {}
    for at in range(0, len(keys), _READ_AT_ONCE):
        few = keys[at : at + _READ_AT_ONCE]
        read = await asyncio.gather(*(_read(shelves, key, there) for key in few))
        links |= {key: found for key, found in zip(few, read, strict=True) if found is not None}
    return links


async def _read(shelves: Shelves, key: str, there: Set[str]) -> frozenset[str] | None:
    """Return the keys that a payload names; None where it cannot be read."""
    folder = key.rpartition("sha256/")[0]
    for place in (key, trash_key(key)):
        try:
            return await names_in(shelves, folder, place, there, NoCipher())
        except NoSuchObject:
            continue
        except BadBlock:
            return None
    return None


async def names_in(
    shelves: Shelves, folder: str, place: str, there: Set[str], cipher: Cipher
) -> frozenset[str]:
    """Read one payload, a piece at a time, and return the keys it names.

    What stands without the word `sha256` before it is a name if it is that of an object there.
    """
    unpacker = Unpacker(_scope(folder), _ANY_LENGTH, cipher)
    names: set[str] = set()
    before = b""

    def look(block: bytes) -> None:
        nonlocal before
        seen = before + block
        names.update([f"{folder}sha256/{digest}" for digest in digests_in(seen)])
        bare = (f"{folder}sha256/{digest}" for digest in hex_in(seen))
        names.update([key for key in bare if key in there])
        before = seen[-LONGEST_NAME:]

    async with aclosing(shelves.stream(place)) as pieces:
        async for piece in pieces:
            for block in unpacker.feed(piece):
                look(block)
    for block in unpacker.finish():
        look(block)
    return frozenset(names)


def _scope(folder: str) -> Scope:
    tenant, organization, _ = folder.split("/")
    return Scope(tenant, organization)
