"""Copies of frozen values with some fields changed: what the fold does most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")
_Setter = Callable[[Any, Any], None]
_Getter = Callable[[Any], Any]


def copied(value: T, **changes: Any) -> T:
    """Do what `dataclasses.replace` does for a frozen slotted value, in a third of the time.

    It copies slots instead of calling `__init__`, which for a frozen class sets field by
    field. The values of the fold check nothing there, so nothing is passed over.
    """
    kind: Any = type(value)
    copies, setters = _members(kind)
    made: T = object.__new__(kind)
    for get, put in copies:
        put(made, get(value))
    for name, new in changes.items():
        setters[name](made, new)
    return made


def settle(fresh: T, **changes: Any) -> T:
    """Set fields of a copy that was made just now and that nobody else has seen."""
    kind: Any = type(fresh)
    setters = _members(kind)[1]
    for name, new in changes.items():
        setters[name](fresh, new)
    return fresh


@lru_cache(maxsize=64)
def _members(kind: Any) -> tuple[tuple[tuple[_Getter, _Setter], ...], dict[str, _Setter]]:
    names = [field.name for field in fields(kind)]
    slots = [vars(kind)[name] for name in names]
    copies = tuple((slot.__get__, slot.__set__) for slot in slots)
    return copies, {name: slot.__set__ for name, slot in zip(names, slots, strict=True)}
