"""Reads events and states of a bundle."""

from __future__ import annotations

from collections.abc import Sequence

from streams.clock import SystemClock
from streams.events.model import Event, Root
from streams.replay.bundle.errors import NotInBundle
from streams.replay.bundle.file import BundleFile
from streams.replay.bundle.log import BundleLog
from streams.replay.bundle.manifest import BundledExecution
from streams.replay.cutoff import Cutoff
from streams.replay.state import Replay, ReplayedState
from streams.replay.verified import BEGIN, ChainLink, VerifiedLog


async def events_of_page(
    bundle: BundleFile, execution_id: int | None, page: int, size: int
) -> tuple[BundledExecution, Sequence[Event]]:
    """Return a page of an execution's events, from 1; None is the first execution.

    Raises:
        NotInBundle: the bundle has no such execution or page.
        TamperedLog: an event is not what was appended.
    """
    one = _execution(bundle, execution_id)
    after = (page - 1) * size
    if after >= one.seq:
        pages = -(-one.seq // size)
        raise NotInBundle(f"page {page}: execution {one.execution_id} has the pages 1 to {pages}")
    through = min(one.seq, after + size)
    codec = bundle.codec()
    log, root = BundleLog(bundle, codec), Root("execution", one.execution_id)
    link = BEGIN
    if after:
        before = await log.page(root, after_seq=after - 1, through_seq=after, limit=1)
        link = ChainLink(after, before[0].chain) if before else BEGIN
    verified = VerifiedLog(log, codec).pages(root, after=link, through_seq=through)
    return one, [event async for events in verified for event in events]


async def state_in(
    bundle: BundleFile, execution_id: int | None, cutoff: Cutoff
) -> tuple[Event, ReplayedState]:
    """Return the event at a moment, and the state after it.

    Raises:
        NotInBundle: the bundle has no such execution.
        BadCutoff: the moment is not one of this execution.
        TamperedLog: an event is not what was appended.
    """
    one = _execution(bundle, execution_id)
    codec = bundle.codec()
    log = BundleLog(bundle, codec)
    verified = VerifiedLog(log, codec)
    replay = Replay(log, verified, SystemClock())
    state = await replay.state(one.execution_id, bundle.manifest.scope, cutoff)
    return await verified.one(Root("execution", one.execution_id), state.as_of.seq), state


def _execution(bundle: BundleFile, execution_id: int | None) -> BundledExecution:
    if execution_id is None:
        return bundle.manifest.executions[0]
    if (found := bundle.execution(execution_id)) is None:
        known = ", ".join(str(one.execution_id) for one in bundle.manifest.executions)
        raise NotInBundle(f"execution {execution_id}: {bundle.name} has {known}")
    return found
