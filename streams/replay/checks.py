"""Outcomes of checks: passed or not, with numbers and the first difference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The outcome of a check. Only `FAILED` is a fault; `NOT_RUN` proves nothing."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Check:
    """One check, done."""

    name: str
    status: Status
    detail: str
    first: str | None = None
    """The first event or object that failed it."""


def passed(name: str, detail: str) -> Check:
    """Return a check without a fault."""
    return Check(name, Status.PASSED, detail)


def failed(name: str, detail: str, first: str | None = None) -> Check:
    """Return a check with a fault."""
    return Check(name, Status.FAILED, detail, first)


def has_failed(checks: Iterable[Check]) -> bool:
    """Return whether any check failed."""
    return any(one.status is Status.FAILED for one in checks)
