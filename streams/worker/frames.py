"""One frame by the protocol: claim, rows, output, save behind the fence, commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from streams.errors import StreamsError
from streams.playbook.model import Playbook, Step
from streams.work.item import BadWorkItem, WorkItem
from streams.worker.adoption import find_saved
from streams.worker.commit import Commit, adopt
from streams.worker.cursors import read_rows
from streams.worker.deferred import Deferral, RowsRefused
from streams.worker.facts import fit
from streams.worker.lease import Lease, LeaseLost
from streams.worker.options import Options, Ports
from streams.worker.output import store_rows
from streams.worker.patience import patiently
from streams.worker.pipeline import Caller, Pipeline
from streams.worker.port import Fence
from streams.worker.window import Bounds, WindowRun

_log = logging.getLogger(__name__)


class FrameRunner:
    """Runs frames, each to its end or until it is somebody else's."""

    def __init__(self, ports: Ports, options: Options) -> None:
        self._ports, self._options = ports, options

    async def run(self, item: WorkItem) -> None:
        """Run one attempt. What another worker has, or has ended, is silently dropped.

        Cancelled, it hands the frame back before it leaves.
        """
        lease = Lease(item, self._ports, self._options)
        if not await lease.claim():
            return
        try:
            async with lease:
                await self._attempt(lease)
        except LeaseLost as lost:
            _log.info("frame %s: attempt %s dropped: %s", item.entity_id, item.attempt, lost)
        except asyncio.CancelledError:
            await self._release(lease)
            raise

    async def _attempt(self, lease: Lease) -> None:
        """Commit the frame, or say why this attempt could not."""
        try:
            commit = await self._work(lease)
            await lease.end("committed", **commit.fields())
        except (LeaseLost, asyncio.CancelledError):
            raise
        except StreamsError as error:
            await self._fail(lease, str(error))
        except Exception as error:  # noqa: BLE001 - a bug ends the attempt, never the waiting
            _log.exception("frame %s: attempt %s failed", lease.item.entity_id, lease.item.attempt)
            await self._fail(lease, f"{type(error).__name__}: {error}")

    async def _fail(self, lease: Lease, why: str) -> None:
        meta = {"rows": 0, "failed_rows": 0}
        await lease.end("failed", status="error", error=fit(why), meta=meta)

    async def _release(self, lease: Lease) -> None:
        try:
            await lease.end("released")
        except LeaseLost as lost:
            _log.info("frame %s: not handed back: %s", lease.item.entity_id, lost)

    async def _work(self, lease: Lease) -> Commit:
        """Do the frame's rows; everything is durable when this returns, but not yet said."""
        item, ports, options = lease.item, self._ports, self._options
        playbook, document = await patiently(
            lambda: self._read(item), clock=ports.clock, until=lease.last_moment
        )
        step = _step(playbook, item)
        scope = await patiently(
            lambda: ports.documents.scope(item, document, step.reads),
            clock=ports.clock,
            until=lease.last_moment,
        )
        cursor = step.loop.cursor if step.loop is not None else None
        rows = await patiently(
            lambda: read_rows(item, cursor, document, scope, ports, options),
            clock=ports.clock,
            until=lease.last_moment,
        )
        deferral = Deferral(_fence(item, options), (task.label for task in step.tasks))
        run = WindowRun(step, scope, rows, Bounds.of(item, options), deferral, ports.clock)
        if item.version > 1 and rows.items:
            saved = await patiently(
                lambda: find_saved(step, run.scope_of(0), deferral, ports.tools),
                clock=ports.clock,
                until=lease.last_moment,
            )
            if saved is not None:
                return adopt(saved)
        pipeline = Pipeline(
            step.tasks,
            ports.tools,
            _caller(item),
            clock=ports.clock,
            patience_s=options.patience_s,
            deferral=deferral,
        )
        await run.go(pipeline)
        return await self._save(lease, run, deferral)

    async def _read(self, item: WorkItem) -> tuple[Playbook, Mapping[str, Any]]:
        playbook = await self._ports.playbooks.get(item.catalog_id, item.catalog_version)
        return playbook, await self._ports.documents.document(item)

    async def _save(self, lease: Lease, run: WindowRun, deferral: Deferral) -> Commit:
        """Make output and saves durable; rows that a target refuses fail, the others stay."""
        ports = self._ports
        while True:
            run.drop_failed()
            output = await patiently(
                lambda: store_rows(ports.payloads, lease.item, run.outputs),
                clock=ports.clock,
                until=lease.last_moment,
            )
            commit = run.commit(output)
            saved = commit.saved()
            try:
                adopted = await patiently(
                    lambda saved=saved: deferral.save(saved),  # type: ignore[misc]
                    clock=ports.clock,
                    until=lease.last_moment,
                )
            except RowsRefused as refused:
                run.fail(refused.rows, refused.task, str(refused))
                continue
            return commit if adopted is None else adopt(adopted)


def _step(playbook: Playbook, item: WorkItem) -> Step:
    step = playbook.steps.get(item.step)
    if step is None:
        raise BadWorkItem(f"{playbook.path} has no step {item.step!r}")
    return step


def _fence(item: WorkItem, options: Options) -> Fence:
    return Fence(
        deployment=options.deployment,
        stage_id=item.stage_id or 0,
        frame_id=item.entity_id,
        task="",
        tenant_id=item.tenant_id,
        organization_id=item.organization_id,
    )


def _caller(item: WorkItem) -> Caller:
    return Caller(
        tenant_id=item.tenant_id,
        organization_id=item.organization_id,
        execution_id=item.execution_id,
        step=item.step,
        entity_id=item.entity_id,
        attempt=item.attempt,
        stage_id=item.stage_id,
    )
