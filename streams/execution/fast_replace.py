"""Fast copies of frozen dataclasses with changed fields, for the fold."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")
_new, _set = object.__new__, object.__setattr__


def copied(value: T, **changes: object) -> T:
    """Copy like `dataclasses.replace`, ten times as fast.

    Copies `__dict__` instead of calling `__init__`, so the class must have no slots and no
    `__post_init__`.
    """
    copy = _new(type(value))
    before = value.__dict__
    fields = before | changes
    if len(fields) != len(before):
        raise _unknown_field(value, fields, len(before))
    _set(copy, "__dict__", fields)
    return copy


def settle(fresh: T, **changes: object) -> T:
    """Set fields of a fresh copy that is not shared yet."""
    fields = fresh.__dict__
    count = len(fields)
    fields.update(changes)
    if len(fields) != count:
        raise _unknown_field(fresh, fields, count)
    return fresh


def _unknown_field(value: object, fields: dict[str, object], count: int) -> KeyError:
    return KeyError(f"{type(value).__name__} has no field {list(fields)[count]!r}")
