"""Copies of frozen values with some fields changed: what the fold does most."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def copied(value: T, **changes: Any) -> T:
    """Do what `dataclasses.replace` does for a frozen value, in a tenth of the time.

    It copies the fields at once instead of calling `__init__`, which for a frozen class sets
    them one by one. The values of the fold check nothing there, so nothing is passed over; to
    be copied like this they have no slots.
    """
    kind: Any = type(value)
    made: T = object.__new__(kind)
    fields = value.__dict__.copy()
    fields.update(changes)
    object.__setattr__(made, "__dict__", fields)
    return _whole(made, len(value.__dict__))


def settle(fresh: T, **changes: Any) -> T:
    """Set fields of a copy that was made just now and that nobody else has seen."""
    count = len(fresh.__dict__)
    fresh.__dict__.update(changes)
    return _whole(fresh, count)


def _whole(value: T, count: int) -> T:
    """Refuse a field that the class does not have."""
    if len(value.__dict__) != count:
        raise KeyError(f"{type(value).__name__} has no field {list(value.__dict__)[count]!r}")
    return value
