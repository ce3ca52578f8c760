"""Audit facts: the acts in the log, each from one event. Pure."""

from __future__ import annotations

from typing import NamedTuple

from streams.events.model import Event
from streams.events.types import PlaybookInitialized, ResultExpired, TriggerRejected, typed
from streams.facts.model import AuditFact


class Act(NamedTuple):
    """Who did it, and to what."""

    actor: str | None
    subject: str


def audit_facts(event: Event) -> tuple[AuditFact, ...]:
    """Return the act of an event, if it is one.

    Acts are events that name who did it (`by`), starts of executions, rejected triggers, and
    results that an operator expired.
    """
    act = _act(event)
    if act is None:
        return ()
    reason = event.meta.get("reason") or event.error
    fact = AuditFact(
        event_id=event.event_id,
        tenant_id=event.tenant_id,
        organization_id=event.organization_id,
        root_type=event.root.type,
        root_id=event.root.id,
        action=event.type,
        actor=act.actor,
        producer=event.producer,
        subject=act.subject,
        reason=None if reason is None else str(reason),
        causation_id=event.causation_id,
        correlation_id=event.correlation_id,
        happened_at=event.event_time,
        seq=event.seq,
        position=event.position,
        stored_at=event.ingest_time,
    )
    return (fact,)


def _act(event: Event) -> Act | None:
    known, meta = typed(event), event.meta
    match known:
        case PlaybookInitialized():
            return Act(_starter(event, known), known.path)
        case TriggerRejected():
            return Act(None, f"{known.topic}/{known.partition}@{known.offset}")
        case ResultExpired(reason="manual"):
            return Act(None, event.aggregate_id)
        case _ if known is not None and hasattr(known, "by"):
            by = meta.get("by")
            subject = meta.get("path") or meta.get("name") or event.aggregate_id
            return Act(None if by is None else str(by), str(subject))
    return None


def _starter(event: Event, known: PlaybookInitialized) -> str | None:
    if known.trigger_id is not None:
        return f"trigger/{known.trigger_id}"
    if event.parent_execution_id is not None:
        return f"execution/{event.parent_execution_id}"
    return None
