"""Taking objects away that nothing refers to, in two steps, so that no writer can lose one.

An object without a reference, older than the grace, first goes to the trash, where readers
still find it. It is deleted for good only when it has lain there for a whole grace, and since
before the oldest open execution of its organization began, and when the log, read again, still
does not name it. A writer that found the object in its place before it went to the trash has by
then appended its event, or its execution is open; either keeps the object, and the next run
brings it back (docs/decisions/0020-payload-store.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from streams.collector.core import key_in
from streams.collector.links import MANY, follow
from streams.collector.port import Ports
from streams.payload.content import trash_key
from streams.payload.objects import Shelves, Stat

_KEY_PARTS = 4


@dataclass(frozen=True, slots=True)
class Survey:
    """The log and the objects beside each other; trash is told under the objects' own keys."""

    now: datetime
    live: frozenset[str]
    objects: Mapping[str, Stat]
    trash: Mapping[str, Stat]
    dangling: tuple[str, ...]
    unreadable: frozenset[str]
    unknown: int
    open_since: Mapping[str, datetime]

    @property
    def orphans(self) -> list[Stat]:
        """Objects in their place that nothing names."""
        return [stat for key, stat in self.objects.items() if key not in self.live]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, and what must wait."""

    to_trash: tuple[Stat, ...]
    young: tuple[Stat, ...]
    to_restore: tuple[str, ...]
    to_purge: tuple[Stat, ...]
    held: tuple[Stat, ...]


async def survey(ports: Ports) -> Survey:
    """Read the log, then list the objects: whatever the log names was stored before."""
    holders: dict[str, int] = {}
    over: dict[str, set[int]] = {}
    sure: set[str] = set()
    async with ports.ledger.snapshot() as snapshot:
        async for holding in snapshot.holdings():
            root = holding.root
            for key in (key_in(root, digest) for digest in holding.live):
                holders[key] = root.id if holders.get(key, root.id) == root.id else MANY
            for key in (key_in(root, digest) for digest in holding.over):
                over.setdefault(key, set()).add(root.id)
            sure |= {key_in(root, digest) for digest in holding.sure}
        open_since, now = await snapshot.open_since(), snapshot.now
    objects, trash, unknown = await _listed(ports.shelves)
    live, unreadable = set(holders), set[str]()
    if trash.keys() - live or objects.keys() - live:
        live, unreadable = await follow(
            ports.ledger, ports.shelves, holders, over, objects.keys() | trash.keys()
        )
    return Survey(
        now=now,
        live=frozenset(live),
        objects=objects,
        trash=trash,
        dangling=tuple(sorted(sure - objects.keys() - trash.keys())),
        unreadable=frozenset(unreadable),
        unknown=unknown,
        open_since=open_since,
    )


def plan(found: Survey, *, grace: timedelta) -> Plan:
    """Decide; where a live payload could not be read, what it names is unknown: nothing goes."""
    stuck = {_folder(key) for key in found.unreadable}
    old: list[Stat] = []
    young: list[Stat] = []
    for stat in found.orphans:
        is_old = stat.modified_at + grace < found.now and _folder(stat.key) not in stuck
        (old if is_old else young).append(stat)
    moving = {stat.key for stat in old}
    purge: list[Stat] = []
    held: list[Stat] = []
    for key, stat in found.trash.items():
        if key in found.live or key in moving:
            continue
        folder = _folder(key)
        limit = min(found.now, found.open_since.get(folder, found.now))
        is_over = stat.modified_at + grace < limit and folder not in stuck
        (purge if is_over else held).append(stat)
    return Plan(
        to_trash=tuple(old),
        young=tuple(young),
        to_restore=tuple(sorted(found.trash.keys() & found.live)),
        to_purge=tuple(purge),
        held=tuple(held),
    )


async def carry_out(ports: Ports, wanted: Plan, found: Survey) -> None:
    """Bring back what is live again, then take away; each step may be done twice."""
    shelves = ports.shelves
    for key in wanted.to_restore:
        if key in found.objects:
            await shelves.remove(found.trash[key].key)
        else:
            await shelves.move(found.trash[key].key, key)
    for stat in wanted.to_trash:
        await shelves.move(stat.key, trash_key(stat.key))
    for stat in wanted.to_purge:
        await shelves.remove(stat.key)
    gone = [stat.key.replace("/trash/", "/sha256/") for stat in wanted.to_purge]
    await ports.ledger.forget(gone)


async def _listed(shelves: Shelves) -> tuple[dict[str, Stat], dict[str, Stat], int]:
    objects: dict[str, Stat] = {}
    trash: dict[str, Stat] = {}
    unknown = 0
    async for stat in shelves.list():
        parts = stat.key.split("/")
        if len(parts) == _KEY_PARTS and parts[2] == "sha256":
            objects[stat.key] = stat
        elif len(parts) == _KEY_PARTS and parts[2] == "trash":
            trash[stat.key.replace("/trash/", "/sha256/")] = stat
        else:
            unknown += 1
    return objects, trash, unknown


def _folder(key: str) -> str:
    tenant, organization, *_ = key.split("/")
    return f"{tenant}/{organization}/"
