"""Values as NoETL's spelling reads them: plain results, and empty where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2.runtime import Undefined


class EmptyValue(Undefined):
    """A value that is not there, in NoETL's spelling: empty, false and zero where it is used."""

    __slots__ = ()
    __hash__ = Undefined.__hash__

    def __getattr__(self, name: str) -> EmptyValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: object) -> EmptyValue:  # type: ignore[override]
        return self

    def __contains__(self, item: object) -> bool:
        return False

    def __int__(self) -> int:  # type: ignore[override]
        return 0

    def __float__(self) -> float:  # type: ignore[override]
        return 0.0

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, EmptyValue)

    def __ne__(self, other: object) -> bool:
        return not self == other


class LoopValue(dict[str, object]):
    """The plain value of a loop: `results` are its rows, `stats` its counts."""


def part_of(value: object, name: str) -> object:
    """Return `data` or `result` of a plain value: its own key of that name, else the value."""
    if isinstance(value, LoopValue):
        return value["results"]
    if isinstance(value, Mapping) and name in value:
        return value[name]
    return value
