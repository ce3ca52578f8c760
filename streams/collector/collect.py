"""One run of the collector: expire results, then sweep objects; or a dry run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from streams.collector.errors import BucketOfAnother, BucketOfNobody, GraceTooShort
from streams.collector.expiry import by_root, counts, expire, find_due, find_due_soon
from streams.collector.port import NO_ENDS, CollectorPorts
from streams.collector.sweep import Survey, SweepPlan, carry_out, plan, survey
from streams.payload.objects.port import NoSuchObject
from streams.payload.store import KNOWN_S

GRACE = timedelta(hours=24)
OWNER_KEY = "noetl-log-id"
MAX_LISTED_KEYS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionReport:
    """Counts of a run; in a dry run, of what it would do. Sizes are of packed objects."""

    dry_run: bool
    objects: int
    object_bytes: int
    live: int
    orphans: int
    orphan_bytes: int
    young: int
    """Orphans within the grace: a writer may be about to reference them."""
    trashed: int
    in_trash: int
    restored: int
    purged: int
    purged_bytes: int
    unknown: int
    """Objects whose keys are not payload keys; they are never touched."""
    dangling_count: int
    dangling: tuple[str, ...]
    """References, from events and live payloads, to missing objects; the first 100."""
    unreadable: tuple[str, ...]
    """Damaged live payloads; no objects of their organizations are deleted."""
    expired: dict[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every live payload exists."""
        return not self.dangling_count and not self.unreadable


async def collect(
    ports: CollectorPorts,
    *,
    grace: timedelta = GRACE,
    scope_grace: timedelta | None = None,
    retention: timedelta | None = None,
    dry_run: bool = False,
    claim: bool = False,
    verify: bool = False,
    known: timedelta = timedelta(seconds=KNOWN_S),
) -> CollectionReport:
    """Expire due results and sweep unreferenced objects.

    `scope_grace` is how long results outlive the execution they are scoped to; by default as
    long as unreferenced objects. `retention` expires every reference of executions that ended
    that long ago; without it only results with a TTL or scope expire. `known` is how long
    writers cache that a payload is stored. `claim` marks unmarked objects as this
    log's even if it references none of them; `verify` reads every live payload again.

    Raises:
        GraceTooShort: the grace is shorter than `known`.
        CollectorBusy: another collector is running.
        BucketOfAnother: the objects belong to another log.
        BucketOfNobody: the objects are not marked, and this log references none of them.
        LockLost: Postgres was unavailable, and another collector may be running.
    """
    if grace < known:
        raise GraceTooShort(grace, known)
    async with ports.ledger.lock():
        is_ours = await _is_ours(ports)
        lasting = grace if scope_grace is None else scope_grace
        found, now = await find_due(ports, grace=lasting, retention=retention)
        if not dry_run:
            found = await expire(ports, found, now)
        # A dry run appends no expiries to the log, but must count the objects they free.
        ended = by_root(found) if dry_run else NO_ENDS
        seen = await survey(ports, verify=verify, ended=ended)
        if not dry_run and not is_ours:
            await _claim(ports, seen, anyway=claim)
        wanted = plan(seen, grace=grace)
        if not dry_run:
            await carry_out(ports, wanted, seen)
            await ports.ledger.mark_swept()
        return _report(seen, wanted, counts(found), dry_run=dry_run)


async def end_results(ports: CollectorPorts, *, grace: timedelta = GRACE) -> dict[str, int]:
    """Expire due results without scanning the log; return the counts by reason.

    Raises:
        CollectorBusy: another collector is running.
    """
    async with ports.ledger.lock():
        found, now = await find_due_soon(ports, grace=grace)
        return counts(await expire(ports, found, now))


async def _is_ours(ports: CollectorPorts) -> bool:
    """Return whether the objects are marked as this log's."""
    ours = await ports.ledger.log_id()
    try:
        found = (await ports.shelves.read(OWNER_KEY, at_most=200)).decode()
    except NoSuchObject:
        return False
    if found != ours:
        raise BucketOfAnother(found, ours, OWNER_KEY)
    return True


async def _claim(ports: CollectorPorts, seen: Survey, *, anyway: bool) -> None:
    """Mark the objects as this log's, unless it references none of them."""
    count = len(seen.objects.keys() | seen.trash.keys())
    if count and not seen.is_known and not anyway:
        raise BucketOfNobody(count)
    await ports.shelves.write(OWNER_KEY, (await ports.ledger.log_id()).encode())


def _report(
    seen: Survey, wanted: SweepPlan, expired: dict[str, int], *, dry_run: bool
) -> CollectionReport:
    orphans = seen.orphans
    return CollectionReport(
        dry_run=dry_run,
        objects=len(seen.objects),
        object_bytes=sum(stat.byte_length for stat in seen.objects.values()),
        live=len(seen.objects) - len(orphans),
        orphans=len(orphans),
        orphan_bytes=sum(stat.byte_length for stat in orphans),
        young=len(wanted.young),
        trashed=len(wanted.to_trash),
        in_trash=len(wanted.held),
        restored=len(wanted.to_restore),
        purged=len(wanted.to_purge),
        purged_bytes=sum(stat.byte_length for stat in wanted.to_purge),
        unknown=seen.unknown,
        dangling_count=len(seen.dangling),
        dangling=seen.dangling[:MAX_LISTED_KEYS],
        unreadable=tuple(sorted(seen.unreadable))[:MAX_LISTED_KEYS],
        expired=expired,
    )
