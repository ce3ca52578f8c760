"""Two-step deletion of unreferenced objects, safe for concurrent writers.

An unreferenced object older than the grace is moved to the trash, where readers still find it.
It is deleted when it has been there for a whole grace, and since before the oldest open
execution of its organization began, and the log still does not reference it. A writer that
deduplicated against the object before the move has by then appended its event, or its
execution is open; either keeps the object, and the next run restores it
(docs/decisions/0020-payload-store.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streams.collector.core import key_in
from streams.collector.links import MANY, follow
from streams.collector.port import NO_ENDS, CollectorPorts, Ends
from streams.payload.content import live_key, trash_key
from streams.payload.objects.port import Shelves, Stat

_KEY_PARTS = 4


@dataclass(frozen=True, slots=True)
class Survey:
    """References in the log and stored objects; trash is listed under the original keys."""

    now: datetime
    live: frozenset[str]
    objects: Mapping[str, Stat]
    trash: Mapping[str, Stat]
    dangling: tuple[str, ...]
    unreadable: frozenset[str]
    unknown: int
    open_since: Mapping[str, datetime]
    is_known: bool = True
    """The log references, or referenced, some existing object."""
    unfinished: tuple[Stat, ...] = ()
    """Temporary files of writers that did not finish."""

    @property
    def orphans(self) -> list[Stat]:
        """Unreferenced objects that are not in the trash."""
        return [stat for key, stat in self.objects.items() if key not in self.live]


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Objects to move, restore and delete, and those that must wait."""

    to_trash: tuple[Stat, ...]
    young: tuple[Stat, ...]
    to_restore: tuple[str, ...]
    to_purge: tuple[Stat, ...]
    held: tuple[Stat, ...]
    spare: tuple[Stat, ...] = ()
    """Trashed copies of live objects, or temporary files of dead writers."""


async def survey(ports: CollectorPorts, *, verify: bool = False, ended: Ends = NO_ENDS) -> Survey:
    """Read the log, then list the objects: an object is stored before the log references it.

    The results in `ended` count as expired.
    """
    holders: dict[str, int] = {}
    over: dict[str, set[int]] = {}
    sure: set[str] = set()
    async with ports.ledger.snapshot() as snapshot:
        async for holding in snapshot.holdings(ended=ended):
            root = holding.root
            for key in (key_in(root, digest) for digest in holding.live):
                holders[key] = root.id if holders.get(key, root.id) == root.id else MANY
            for key in (key_in(root, digest) for digest in holding.over):
                over.setdefault(key, set()).add(root.id)
            sure |= {key_in(root, digest) for digest in holding.sure}
        open_since, now = await snapshot.open_since(), snapshot.now
    listed = await _listed(ports.shelves)
    present = listed.objects.keys() | listed.trash.keys()
    reached = await follow(ports.ledger, ports.shelves, holders, over, present, verify=verify)
    return Survey(
        now=now,
        live=frozenset(reached.live),
        objects=listed.objects,
        trash=listed.trash,
        dangling=tuple(sorted((sure | reached.sure) - present)),
        unreadable=frozenset(reached.unreadable),
        unknown=listed.unknown,
        open_since=open_since,
        is_known=not (present.isdisjoint(reached.live) and present.isdisjoint(over)),
        unfinished=tuple(listed.unfinished),
    )


def plan(found: Survey, *, grace: timedelta) -> SweepPlan:
    """Decide; an organization with an unreadable live payload loses nothing."""
    stuck = {_folder(key) for key in found.unreadable}
    old: list[Stat] = []
    young: list[Stat] = []
    for stat in found.orphans:
        is_old = stat.modified_at + grace < found.now and _folder(stat.key) not in stuck
        (old if is_old else young).append(stat)
    moving = {stat.key for stat in old}
    restore: list[str] = []
    purge: list[Stat] = []
    held: list[Stat] = []
    spare = [stat for stat in found.unfinished if stat.modified_at + grace < found.now]
    for key, stat in found.trash.items():
        folder = _folder(key)
        if key in moving:
            continue
        if key in found.live and key not in found.objects:
            restore.append(key)
        elif key in found.live:
            # A young one may be half of a move, whose other half would delete the last copy.
            (spare if stat.modified_at + grace < found.now else held).append(stat)
        else:
            limit = min(found.now, found.open_since.get(folder, found.now))
            is_over = stat.modified_at + grace < limit and folder not in stuck
            (purge if is_over else held).append(stat)
    return SweepPlan(
        to_trash=tuple(old),
        young=tuple(young),
        to_restore=tuple(sorted(restore)),
        to_purge=tuple(purge),
        held=tuple(held),
        spare=tuple(spare),
    )


async def carry_out(ports: CollectorPorts, steps: SweepPlan, found: Survey) -> None:
    """Restore, then trash, then delete; every step is idempotent.

    The lock is checked before each step: another collector may have started.

    Raises:
        LockLost: the lock is no longer held.
    """
    shelves, ledger = ports.shelves, ports.ledger
    for key in steps.to_restore:
        await ledger.check_lock()
        await shelves.move(found.trash[key].key, key)
    for stat in steps.to_trash:
        await ledger.check_lock()
        await shelves.move(stat.key, trash_key(stat.key))
    for stat in (*steps.to_purge, *steps.spare):
        await ledger.check_lock()
        await shelves.remove(stat.key)
    await ledger.delete_links([live_key(stat.key) for stat in steps.to_purge])


@dataclass(slots=True)
class _Listed:
    objects: dict[str, Stat] = field(default_factory=dict)
    trash: dict[str, Stat] = field(default_factory=dict)
    unfinished: list[Stat] = field(default_factory=list)
    unknown: int = 0


async def _listed(shelves: Shelves) -> _Listed:
    listed = _Listed()
    async for stat in shelves.list():
        folder, name = _split(stat.key)
        if folder is not None and name.startswith("."):
            listed.unfinished.append(stat)
        elif folder == "sha256":
            listed.objects[stat.key] = stat
        elif folder == "trash":
            listed.trash[live_key(stat.key)] = stat
        else:
            listed.unknown += 1
    return listed


def _split(key: str) -> tuple[str | None, str]:
    """Return the folder of an object within its organization, and its name."""
    parts = key.split("/")
    if len(parts) == _KEY_PARTS and parts[2] in ("sha256", "trash"):
        return parts[2], parts[3]
    return None, key


def _folder(key: str) -> str:
    tenant, organization, *_ = key.split("/")
    return f"{tenant}/{organization}/"
