"""Manual expiry of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streams.collector.core import Due, RootHolding, retained_id
from streams.collector.errors import EndedAlready, NothingToEnd, StillNeeded
from streams.collector.expiry import by_root, expire
from streams.collector.port import CollectorPorts
from streams.events.locator import ResultUri, parse
from streams.events.model import Root
from streams.events.types import ResultExpired, ResultStored, typed
from streams.execution.suspension import own_stream
from streams.results.lookup import NoSuchResult
from streams.results.reference import ResultRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Expired results, or in a dry run those that would be; the collector then sweeps."""

    dry_run: bool
    execution_id: str
    results: tuple[str, ...]
    """Their ids."""
    payloads: int
    """Number of payloads that this execution no longer references."""


async def end_result(ports: CollectorPorts, uri: str, *, dry_run: bool = False) -> Ended:
    """Expire the result with this name.

    A payload that another event references stays live; `end_execution` expires that, too.

    Raises:
        BadLocator: the name is invalid.
        NoSuchResult: there is no such result.
        EndedAlready: it has already expired.
        StillNeeded: its execution, or an outer one, is running.
    """
    name = parse(uri)
    if not isinstance(name, ResultUri) or not (name.key.isascii() and name.key.isdigit()):
        raise NoSuchResult(uri)
    root, ref = Root("execution", name.execution_id), None
    async for event in ports.log.read_stream(root, f"{root}/result/{name.key}"):
        known = typed(event)
        if isinstance(known, ResultExpired):
            raise EndedAlready(uri, event.ingest_time, known.reason)
        if isinstance(known, ResultStored):
            ref = ResultRef(known.result or {}).uri or uri
    if ref != uri:
        raise NoSuchResult(uri)
    holding = await _holding(ports, name.execution_id)
    return await _end(ports, holding, [int(name.key)], dry_run=dry_run)


async def end_execution(
    ports: CollectorPorts, execution_id: int, *, dry_run: bool = False
) -> Ended:
    """Expire everything that an execution stored: its results and the payloads of its events.

    Raises:
        NothingToEnd: the execution does not exist, or has nothing left to expire.
        StillNeeded: it, or an outer one, is running.
    """
    holding = await _holding(ports, execution_id)
    ids = [result.result_id for result in holding.results]
    ids += [retained_id(holding.root.id, digest) for digest in sorted(holding.live)]
    if not ids:
        raise NothingToEnd(execution_id)
    return await _end(ports, holding, ids, dry_run=dry_run)


async def _holding(ports: CollectorPorts, execution_id: int) -> RootHolding:
    """Return the holding of an execution that is no longer running."""
    root = Root("execution", execution_id)
    if not [one async for one in ports.log.read_stream(root, own_stream(root))]:
        raise NothingToEnd(execution_id)
    async with ports.ledger.snapshot() as snapshot:
        holding = await snapshot.holding(execution_id)
        ended = await snapshot.workflows_ended([execution_id])
    if execution_id not in ended or (holding is not None and holding.root.ended_at is None):
        raise StillNeeded(execution_id)
    if holding is None:
        raise NothingToEnd(execution_id)
    return holding


async def _end(
    ports: CollectorPorts, holding: RootHolding, ids: Sequence[int], *, dry_run: bool
) -> Ended:
    async with ports.ledger.snapshot() as snapshot:
        now = snapshot.now
    execution_id = holding.root.id
    wanted = [Due(holding.root, one, "manual", holding.last_event_id) for one in ids]
    ended = wanted if dry_run else await expire(ports, wanted, now)
    if not ended:
        raise EndedAlready(f"what execution {execution_id} stored", now, "meanwhile")
    async with ports.ledger.snapshot() as snapshot:
        after = await snapshot.holding(execution_id, by_root(ended))
    stored = {result.result_id for result in holding.results}
    return Ended(
        dry_run=dry_run,
        execution_id=str(execution_id),
        results=tuple(str(one.result_id) for one in ended if one.result_id in stored),
        payloads=0 if after is None else len(holding.live - after.live),
    )
