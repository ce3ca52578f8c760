"""Rules of retention: which executions of a partition leave the log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from streams.retention.port import ExecutionFacts, Policy


class KeepReason(StrEnum):
    """Why an execution stays in the log."""

    NO_POLICY = "its tenant has no policy"
    OPEN = "it has not ended"
    YOUNG = "its tenant's policy keeps it longer"
    PARENT_OPEN = "its parent has not ended"
    NOT_PROJECTED = "it is not projected up to its end"
    FAMILY = "its parent or a child stays"


@dataclass(frozen=True, slots=True)
class Stay:
    """Executions that stay for one reason, and one of them."""

    reason: KeepReason
    count: int
    example: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """The executions that leave, in order of their ids, and those that stay."""

    leaving: tuple[ExecutionFacts, ...]
    staying: tuple[Stay, ...]


def judge(found: Sequence[ExecutionFacts], policies: Iterable[Policy], now: datetime) -> Judgement:
    """Decide for each execution of a partition; parent and children leave together."""
    kept_for = {one.tenant_id: timedelta(days=one.keep_days) for one in policies}
    reasons: dict[int, KeepReason] = {}
    for one in found:
        if (reason := _reason(one, kept_for, now)) is not None:
            reasons[one.execution_id] = reason
    _keep_families(found, reasons)
    leaving = tuple(one for one in found if one.execution_id not in reasons)
    return Judgement(leaving, tuple(_stays(reasons)))


def _reason(
    one: ExecutionFacts, kept_for: Mapping[str, timedelta], now: datetime
) -> KeepReason | None:
    kept = kept_for.get(one.scope.tenant_id)
    if kept is None:
        return KeepReason.NO_POLICY
    if not one.is_ended:
        return KeepReason.OPEN
    if one.last_at + kept > now:
        return KeepReason.YOUNG
    if one.is_parent_open:
        return KeepReason.PARENT_OPEN
    if one.projected_seq < one.seq:
        return KeepReason.NOT_PROJECTED
    return None


def _keep_families(found: Sequence[ExecutionFacts], reasons: dict[int, KeepReason]) -> None:
    """Keep whoever is related to an execution that stays."""
    related: dict[int, list[int]] = {}
    present = {one.execution_id for one in found}
    for one in found:
        if one.parent_id in present:
            assert one.parent_id is not None
            related.setdefault(one.parent_id, []).append(one.execution_id)
            related.setdefault(one.execution_id, []).append(one.parent_id)
    reached = list(reasons)
    for execution_id in reached:
        for other in related.get(execution_id, ()):
            if other not in reasons:
                reasons[other] = KeepReason.FAMILY
                reached.append(other)


def _stays(reasons: Mapping[int, KeepReason]) -> Iterable[Stay]:
    for reason in KeepReason:
        ids = [execution_id for execution_id, found in reasons.items() if found is reason]
        if ids:
            yield Stay(reason, len(ids), min(ids))
