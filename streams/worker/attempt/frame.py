"""Execution of a frame: claim, rows, output, fenced save, commit."""

from __future__ import annotations

import logging
from contextlib import nullcontext

from streams.errors import Refused, StreamsError, Unavailable
from streams.execution.attempts import FrameAttempt, FrameReport
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.worker.attempt.adoption import find_saved
from streams.worker.attempt.claimed import run_claimed
from streams.worker.attempt.commit import Commit, adopt
from streams.worker.attempt.context import Attempt, begin
from streams.worker.attempt.ctx_changes import serialize_ctx_changes
from streams.worker.attempt.deferred import Deferral, RowsRefused
from streams.worker.attempt.events import fit
from streams.worker.attempt.lease import AttemptLease, LeaseLost
from streams.worker.attempt.output import store_rows
from streams.worker.attempt.secrets import concealed
from streams.worker.options import Options, WorkerPorts
from streams.worker.port import Fence, ReleasedSlot
from streams.worker.rows.cursors import read_rows
from streams.worker.rows.window import Bounds, WindowRun

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
        try:
            commit = await _work(await begin(lease, self._ports, self._options, released_slot))
            attempt = _attempt_of(lease)
            await lease.end(attempt.committed(commit.report, continues=commit.continues))
        except LeaseLost:
            raise
        except Unavailable as error:
            # While the log was away as well, nothing says that the frame's target is to blame.
            await (lease.hand_back() if lease.is_unconfirmed else _fail(lease, str(error)))
        except StreamsError as error:
            await _fail(lease, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the attempt
            # A bug fails the attempt with its message, so that nothing waits for the lease.
            _log.exception("frame %s: attempt %s failed", lease.item.entity_id, lease.item.attempt)
            await _fail(lease, f"{type(error).__name__}: {error}")


async def _work(attempt: Attempt) -> Commit:
    """Run the frame's rows; output and saves are durable on return, but not committed."""
    item, step, ports = attempt.item, attempt.step, attempt.ports
    deferral = Deferral(_fence(item, attempt.options), (task.label for task in step.tasks))
    if item.version > 1:
        # An earlier attempt may have saved without committing.
        saved = await attempt.retry(lambda: find_saved(step, attempt.scope, deferral, ports.tools))
        if saved is not None:
            return adopt(saved)
    cursor = step.loop.cursor if step.loop is not None else None
    rows = await attempt.retry(
        lambda: read_rows(item, cursor, attempt.document, attempt.scope, ports, attempt.options)
    )
    bounds = Bounds.of(item, attempt.options)
    run = WindowRun(step, attempt.scope, rows, bounds, deferral, ports.clock)
    await run.go(attempt.pipeline(deferral))
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
            changes = await serialize_ctx_changes(attempt, run.changes)
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


async def _fail(lease: AttemptLease, why: str) -> None:
    await lease.end(_attempt_of(lease).failed(fit(why), FrameReport()))


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
        tenant_id=item.tenant_id,
        organization_id=item.organization_id,
    )
