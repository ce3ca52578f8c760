"""Which executions leave the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from streams.payload.port import Scope
from streams.retention.core import KeepReason, judge
from streams.retention.port import ExecutionFacts, Policy

NOW = datetime(2026, 11, 1, tzinfo=UTC)
POLICIES = [Policy("acme", 30)]


def facts(execution_id: int, *, tenant: str = "acme", **changes: Any) -> ExecutionFacts:
    fields: dict[str, Any] = {
        "seq": 9,
        "chain": bytes(32),
        "is_ended": True,
        "last_at": NOW - timedelta(days=31),
        "parent_id": None,
        "is_parent_open": False,
        "projected_seq": 9,
        **changes,
    }
    return ExecutionFacts(execution_id=execution_id, scope=Scope(tenant, "care"), **fields)


def reasons(*found: ExecutionFacts) -> dict[KeepReason, int]:
    return {one.reason: one.example for one in judge(found, POLICIES, NOW).staying}


def test_an_execution_leaves_after_the_days_of_its_tenant() -> None:
    old, young = facts(1), facts(2, last_at=NOW - timedelta(days=29))
    judged = judge([old, young], POLICIES, NOW)
    assert judged.leaving == (old,)
    assert reasons(old, young) == {KeepReason.YOUNG: 2}


def test_a_tenant_without_a_policy_keeps_everything() -> None:
    assert reasons(facts(1, tenant="other")) == {KeepReason.NO_POLICY: 1}


def test_open_and_unprojected_executions_stay() -> None:
    found = reasons(
        facts(1, is_ended=False), facts(2, projected_seq=8), facts(3, is_parent_open=True)
    )
    assert found == {KeepReason.OPEN: 1, KeepReason.NOT_PROJECTED: 2, KeepReason.PARENT_OPEN: 3}


def test_a_family_stays_for_one_of_its_members() -> None:
    family = [facts(1), facts(2, parent_id=1), facts(3, parent_id=2), facts(4, parent_id=1)]
    assert judge(family, POLICIES, NOW).leaving == tuple(family)
    family[3] = facts(4, parent_id=1, is_ended=False)
    judged = judge(family, POLICIES, NOW)
    assert judged.leaving == ()
    assert {one.reason: one.count for one in judged.staying} == {
        KeepReason.OPEN: 1,
        KeepReason.FAMILY: 3,
    }
