"""Copies of frozen values with some fields changed: what the fold does most."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def copied(value: T, **changes: object) -> T:
    """Do what `dataclasses.replace` does for a frozen value, in a tenth of the time.

    It copies the fields at once instead of calling `__init__`, which for a frozen class sets
    them one by one. The values of the fold check nothing there, so nothing is passed over; to
    be copied like this they have no slots.
    """
    made = object.__new__(type(value))
    before = value.__dict__
    fields = {**before, **changes}
    if len(fields) != len(before):
        raise _unknown_field(value, fields, len(before))
    object.__setattr__(made, "__dict__", fields)
    return made


def settle(fresh: T, **changes: object) -> T:
    """Set fields of a copy that was made just now and that nobody else has seen."""
    fields = fresh.__dict__
    count = len(fields)
    fields.update(changes)
    if len(fields) != count:
        raise _unknown_field(fresh, fields, count)
    return fresh


def _unknown_field(value: object, fields: dict[str, object], count: int) -> KeyError:
    return KeyError(f"{type(value).__name__} has no field {list(fields)[count]!r}")
