"""Execution of a frame: claim, rows, output, fenced save, commit."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace

from streams.errors import Refused, StreamsError, Unavailable
from streams.execution.attempts import FrameAttempt, FrameReport
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.worker.attempt.adoption import find_saved
from streams.worker.attempt.claimed import run_claimed
from streams.worker.attempt.commit import Commit, adopt
from streams.worker.attempt.context import Attempt, begin
from streams.worker.attempt.ctx_changes import serialize_ctx_changes, serialize_vars
from streams.worker.attempt.deferred import Deferral, RowsRefused
from streams.worker.attempt.events import fit
from streams.worker.attempt.lease import AttemptLease, LeaseLost
from streams.worker.attempt.output import store_rows
from streams.worker.attempt.secrets import concealed
from streams.worker.options import Options, WorkerPorts
from streams.worker.pace.lanes import RowLanes
from streams.worker.port import Fence, ReleasedSlot
from streams.worker.rows.bounds import Bounds
from streams.worker.rows.cursors import read_rows
from streams.worker.rows.window import WindowRun

_log = logging.getLogger(__name__)


class FrameRunner:
    """Runs frames, each until it ends or its lease is lost."""

    def __init__(self, ports: WorkerPorts, options: Options) -> None:
        self._ports, self._options = ports, options

    async def run(self, item: WorkItem, released_slot: ReleasedSlot = nullcontext) -> None:
        """Run one attempt. A frame that another worker holds, or that has ended, is dropped.

        When cancelled, it hands the frame back.
        """
        await run_claimed(
            item, self._ports, self._options, lambda lease: self._attempt(lease, released_slot)
        )

    async def _attempt(self, lease: AttemptLease, released_slot: ReleasedSlot) -> None:
        """Commit the frame, or append why the attempt failed."""
        counts, clock = self._ports.counts, self._ports.clock
        began = clock.monotonic()
        try:
            commit = await _work(await begin(lease, self._ports, self._options, released_slot))
            attempt = _attempt_of(lease)
            await lease.end(attempt.committed(commit.report, continues=commit.continues))
            counts.rows(commit.report.rows, commit.report.failed_rows)
            counts.committed(commit.report.rows, clock.monotonic() - began)
        except LeaseLost:
            raise
        except Unavailable as error:
            # While the log was away as well, nothing says that the frame's target is to blame.
            await (lease.hand_back() if lease.is_unconfirmed else self._fail(lease, str(error)))
        except StreamsError as error:
            await self._fail(lease, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the attempt
            # A bug fails the attempt with its message, so that nothing waits for the lease.
            _log.exception("frame %s: attempt %s failed", lease.item.entity_id, lease.item.attempt)
            await self._fail(lease, f"{type(error).__name__}: {error}")

    async def _fail(self, lease: AttemptLease, why: str) -> None:
        await lease.end(_attempt_of(lease).failed(fit(why), FrameReport()))
        self._ports.counts.failed()


async def _work(attempt: Attempt) -> Commit:
    """Run the frame's rows; output and saves are durable on return, but not committed.

    Rows done long before the others are checkpointed: a later attempt starts after them.
    """
    began, item, is_repeated = attempt.ports.clock.monotonic(), attempt.item, True
    while (commit := await _part(attempt, item, began, is_repeated=is_repeated)).is_checkpoint:
        await attempt.lease.checkpoint(commit.report)
        attempt.ports.counts.rows(commit.report.rows, commit.report.failed_rows)
        done = (item.rows_before or 0) + commit.report.rows
        item, is_repeated = replace(item, cursor=commit.report.cursor, rows_before=done), False
    return commit


async def _part(attempt: Attempt, item: WorkItem, began: float, *, is_repeated: bool) -> Commit:
    """Run the rows from the item's cursor up to the next checkpoint, or to the frame's end."""
    step, ports = attempt.step, attempt.ports
    deferral = Deferral(_fence(item, attempt.options), (task.label for task in step.tasks))
    if item.version > 1 and is_repeated:
        # An earlier attempt may have saved without committing.
        saved = await attempt.retry(lambda: find_saved(step, attempt.scope, deferral, ports.tools))
        if saved is not None:
            return adopt(saved)
    cursor = step.loop.cursor if step.loop is not None else None
    rows = await attempt.retry(
        lambda: read_rows(item, cursor, attempt.document, attempt.scope, ports, attempt.options)
    )
    bounds = Bounds.of(item, attempt.options)
    run = WindowRun(
        step,
        attempt.scope,
        rows,
        bounds,
        deferral,
        ports.clock,
        began=began,
        before=item.rows_before or 0,
    )
    lanes = RowLanes(run.width, attempt.released_slot)
    await run.go(attempt.pipeline(deferral, lanes), lanes)
    return await _save(attempt, run, deferral)


async def _save(attempt: Attempt, run: WindowRun, deferral: Deferral) -> Commit:
    """Make output and saves durable; only the rows that a target rejects fail."""
    while True:
        run.drop_failed()
        rows = run.outputs
        output = await attempt.retry(
            lambda rows=rows: store_rows(attempt.ports.payloads, attempt.item, rows)  # type: ignore[misc]
        )
        try:
            own = serialize_vars(run.vars)
        except Refused as refused:
            run.fail(run.vars_changing, "set_vars", str(refused))
            continue
        try:
            changes = own | await serialize_ctx_changes(attempt, run.changes)
        except Refused as refused:
            # Another attempt would fail too, and repeat the effects of its rows.
            run.fail(run.changing, "set_ctx", str(refused))
            continue
        await attempt.results.publish()
        commit = run.commit(output, changes)
        saved = commit.saved()
        try:
            adopted = await attempt.retry(lambda saved=saved: deferral.save(saved))  # type: ignore[misc]
        except RowsRefused as refused:
            run.fail(refused.rows, refused.task, concealed(str(refused)))
        else:
            return commit if adopted is None else adopt(adopted)


def _attempt_of(lease: AttemptLease) -> FrameAttempt:
    """Return the attempt of a lease on a frame."""
    if not isinstance(lease.attempt, FrameAttempt):
        raise BadWorkItem(f"{lease.item.kind} {lease.item.entity_id} is not a frame")
    return lease.attempt


def _fence(item: WorkItem, options: Options) -> Fence:
    return Fence(
        deployment=options.deployment,
        stage_id=item.stage_id or 0,
        frame_id=item.entity_id,
        task="",
        partition="" if not item.rows_before else f"after/{item.rows_before}",
        tenant_id=item.tenant_id,
        organization_id=item.organization_id,
    )
