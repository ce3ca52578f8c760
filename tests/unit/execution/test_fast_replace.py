"""The fold's copies are those of dataclasses.replace."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime

import pytest

from streams.execution.fast_replace import copied
from streams.execution.plan import Plan

PLAN = Plan(
    execution_id=1,
    tenant_id="acme",
    organization_id="care",
    catalog_id=7,
    catalog_version=1,
    path="a/b",
    started_at=datetime(2026, 5, 16, tzinfo=UTC),
    ctx={"a": 1},
)


def test_a_copy_is_what_replace_gives() -> None:
    assert copied(PLAN, seq=5, ctx={}) == replace(PLAN, seq=5, ctx={})
    assert copied(PLAN) == PLAN
    assert copied(PLAN, seq=5) != PLAN


def test_a_copy_is_as_frozen_as_the_original() -> None:
    with pytest.raises(FrozenInstanceError):
        copied(PLAN, seq=5).seq = 6  # type: ignore[misc]


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(KeyError):
        copied(PLAN, sequence=5)
