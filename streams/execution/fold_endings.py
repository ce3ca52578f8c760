"""The fold of whole executions: suspended, resumed, ended, replied to, redriven."""

from __future__ import annotations

from datetime import datetime

from streams.events.types import (
    ExecutionCancelled,
    ExecutionResumed,
    ExecutionSuspended,
    PlaybookCompleted,
    PlaybookFailed,
    RedriveRequested,
    ReplySent,
)
from streams.execution.fast_replace import copied
from streams.execution.handlers import Handlers
from streams.execution.plan import CANCELLED, COMPLETED, FAILED, PARTIAL, RUNNING, Plan

ENDING_HANDLERS = Handlers()


@ENDING_HANDLERS.on(PlaybookCompleted)
def _completed(plan: Plan, event: PlaybookCompleted, at: datetime) -> Plan:
    return _ended(plan, event, PARTIAL if event.status == PARTIAL else COMPLETED, at)


@ENDING_HANDLERS.on(PlaybookFailed)
def _failed(plan: Plan, event: PlaybookFailed, at: datetime) -> Plan:
    return _ended(plan, event, FAILED, at)


@ENDING_HANDLERS.on(ExecutionCancelled)
def _cancelled(plan: Plan, event: ExecutionCancelled, at: datetime) -> Plan:
    return _ended(plan, event, CANCELLED, at)


def _ended(
    plan: Plan,
    event: PlaybookCompleted | PlaybookFailed | ExecutionCancelled,
    status: str,
    at: datetime,
) -> Plan:
    if plan.has_ended:
        return plan  # a terminal status is sticky
    return copied(
        plan,
        status=status,
        ended_at=at,
        result=None if isinstance(event, ExecutionCancelled) else event.result,
        output=None if isinstance(event, ExecutionCancelled) else event.payload_ref,
        error=event.error,
        activations={},
        commands={},
        stages={},
    )


@ENDING_HANDLERS.on(ExecutionSuspended)
def _suspended(plan: Plan, event: ExecutionSuspended, at: datetime) -> Plan:
    return copied(plan, is_suspended=True, suspension=event.reason)


@ENDING_HANDLERS.on(ExecutionResumed)
def _resumed(plan: Plan, event: ExecutionResumed, at: datetime) -> Plan:
    return copied(plan, is_suspended=False, suspension=None)


@ENDING_HANDLERS.on(ReplySent)
def _replied(plan: Plan, event: ReplySent, at: datetime) -> Plan:
    return copied(plan, is_replied=True)


@ENDING_HANDLERS.on(RedriveRequested)
def _redriven(plan: Plan, event: RedriveRequested, at: datetime) -> Plan:
    return copied(plan, status=RUNNING, ended_at=None, error=None, failure=None)
