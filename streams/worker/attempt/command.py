"""Execution of a command: claim, run the pipeline once, append the outcome."""

from __future__ import annotations

import logging
from contextlib import nullcontext

from streams.errors import StreamsError, Unavailable
from streams.events.reading import int_of, shape_of
from streams.events.types import CommandCompleted, CommandFailed, ResultEnvelope
from streams.execution.attempts import CommandAttempt
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.worker.attempt.claimed import run_claimed
from streams.worker.attempt.completion import CommandOutcome, completed, failed, failure
from streams.worker.attempt.context import Attempt, begin
from streams.worker.attempt.lease import AttemptLease, LeaseLost
from streams.worker.attempt.row import PipelineRow, RowOutcome
from streams.worker.options import Options, WorkerPorts
from streams.worker.pace.lanes import RowLanes
from streams.worker.port import ReleasedSlot
from streams.worker.rows.cursors import plan

_log = logging.getLogger(__name__)


class CommandRunner:
    """Runs commands, each until it ends or its lease is lost."""

    def __init__(self, ports: WorkerPorts, options: Options) -> None:
        self._ports, self._options = ports, options

    async def run(self, item: WorkItem, released_slot: ReleasedSlot = nullcontext) -> None:
        """Run one attempt. A command that another worker holds, or that has ended, is dropped.

        When cancelled, it hands the command back.
        """
        await run_claimed(
            item, self._ports, self._options, lambda lease: self._attempt(lease, released_slot)
        )

    async def _attempt(self, lease: AttemptLease, released_slot: ReleasedSlot) -> None:
        try:
            outcome = await _work(await begin(lease, self._ports, self._options, released_slot))
            await lease.end(_ending(lease, outcome))
        except LeaseLost:
            raise
        except Unavailable as error:
            # Not the command's fault: its lease expires, and it is retried.
            _log.warning("command %s: attempt abandoned: %s", lease.item.entity_id, error)
            if lease.is_unconfirmed:
                await lease.hand_back()
        except StreamsError as error:
            await lease.end(_ending(lease, failure("refused", str(error))))
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the attempt
            # A bug fails the command with its message, so that nothing waits for it.
            _log.exception("command %s failed", lease.item.entity_id)
            why = f"{type(error).__name__}: {error}"
            await lease.end(_ending(lease, failure("internal", why)))


def _ending(lease: AttemptLease, outcome: CommandOutcome) -> CommandCompleted | CommandFailed:
    """Return the event that ends the command."""
    attempt = lease.attempt
    if not isinstance(attempt, CommandAttempt):
        raise BadWorkItem(f"{lease.item.kind} {lease.item.entity_id} is not a command")
    result = shape_of(outcome.envelope.to_json(), ResultEnvelope)
    if outcome.error is not None:
        return attempt.failed(outcome.error, result, outcome.payload_ref)
    return attempt.completed(result, outcome.payload_ref)


async def _work(attempt: Attempt) -> CommandOutcome:
    """Run the command's tasks."""
    row = PipelineRow(0, attempt.scope)
    if attempt.item.tool == "cursor.plan":
        ran = await _plan(attempt)
    else:
        lanes = RowLanes(1, attempt.released_slot)
        lanes.enter()
        ran = await attempt.pipeline(lanes=lanes).run(row)
    end = failed if ran.status == "error" else completed
    return await attempt.retry(lambda: end(attempt, ran, row))


async def _plan(attempt: Attempt) -> RowOutcome:
    """Plan the frames of the step's cursor."""
    loop = attempt.step.loop
    if loop is None or loop.cursor is None:
        raise BadWorkItem(f"step {attempt.step.name} has no cursor to plan frames from")
    cursor, size = loop.cursor, max(1, int_of(attempt.document.get("size")) or 1)
    data = await attempt.retry(
        lambda: plan(attempt.item, cursor, size, attempt.scope, attempt.ports)
    )
    return RowOutcome("success", data, {})
