"""Comparison of a run with what its test case expects. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streams.events.model import Json
from streams.trial.case_file import Expectation
from streams.trial.progress import clipped
from streams.trial.run import TrialResult


def differences(expect: Expectation, found: TrialResult) -> Iterator[str]:
    """Yield what differs from the expected end, except rows in databases."""
    if found.status != expect.status:
        why = f" ({found.error})" if found.error else ""
        yield f"status: expected {expect.status}, got {found.status}{why}"
    if expect.has_result:
        yield from subset_differences("result", expect.result, found.result)
    if expect.error is not None and expect.error not in (found.error or ""):
        yield f"error: expected a message with {expect.error!r}, got {found.error!r}"
    if expect.steps is not None and list(expect.steps) != found.steps:
        yield from _step_differences(expect.steps, found.steps)


def row_differences(where: str, expected: Sequence[Json], found: Sequence[Json]) -> Iterator[str]:
    """Yield what differs between the rows of a query and the expected ones."""
    if len(expected) != len(found):
        yield f"{where}: expected {len(expected)} rows, got {len(found)}: {clipped(list(found))}"
    for place, (one, other) in enumerate(zip(expected, found, strict=False)):
        yield from subset_differences(f"{where}[{place}]", one, other)


def subset_differences(where: str, expected: Json, found: Json) -> Iterator[str]:
    """Yield what `expected` has and `found` has not; a mapping may have more keys."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from subset_differences(f"{where}.{key}", value, found[key])
            else:
                yield f"{where}.{key}: expected {clipped(value)}, got nothing"
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            counts = f"expected {len(expected)} items, got {len(found)}"
            yield f"{where}: {counts}: {clipped(found)}"
        for place, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from subset_differences(f"{where}[{place}]", one, other)
    elif not _is_equal(expected, found):
        yield f"{where}: expected {clipped(expected)}, got {clipped(found)}"


def _is_equal(expected: Json, found: Json) -> bool:
    """Return whether two values are equal; true is not 1."""
    return expected == found and isinstance(expected, bool) == isinstance(found, bool)


def _step_differences(expected: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    missing = [step for step in expected if step not in found]
    surplus = [step for step in found if step not in expected]
    yield f"steps: expected {', '.join(expected)}; got {', '.join(found) or 'none'}"
    if missing:
        yield f"steps: not entered: {', '.join(missing)}"
    if surplus:
        yield f"steps: not expected: {', '.join(surplus)}"
