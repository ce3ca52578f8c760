"""Parsed `spec.rate`: how many calls of a task are made in a second, over all workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams.errors import Refused
from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.shape import Either, Fields, Number, Text
from streams.playbook.template import Template
from streams.playbook.yaml_document import Path

MOST_PER_SECOND = 100_000
MOST_BURST = 10_000
_number = Either((Number("", 0, whole=False), Text()))
RATE = Fields(
    "rate",
    {
        "per_second": _number,
        "burst": _number,
        "key": Text("What shares the rate; the task itself unless given."),
    },
    "How many calls are made in a second, over all workers.",
    required=("per_second",),
)


class BadRate(Refused):
    """A rendered rate cannot be used."""


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """The rate of a task; its templates are rendered for each row."""

    per_second: Template
    burst: Template | None = None
    key: Template | None = None

    @property
    def templates(self) -> tuple[Template, ...]:
        """Its templates, in order."""
        return tuple(one for one in (self.per_second, self.burst, self.key) if one is not None)

    def render(self, scope: Mapping[str, object]) -> tuple[float, int, str | None]:
        """Return calls per second, burst and key.

        Raises:
            BadRate: a value is not valid.
            ExpressionFailed: a template cannot be rendered.
        """
        per_second = _checked("per_second", self.per_second.render(scope), MOST_PER_SECOND)
        burst = (
            1.0 if self.burst is None else _checked("burst", self.burst.render(scope), MOST_BURST)
        )
        key = None if self.key is None else self.key.render(scope)
        return per_second, max(1, int(burst)), None if key is None else str(key)


def rate_of(draft: PlaybookDraft, spec: Json, path: Path) -> RatePolicy | None:
    """Return the rate of a task's `spec`, if it has one; a number that is not valid is reported."""
    rate = spec.get("rate") if isinstance(spec, dict) else None
    if not isinstance(rate, dict) or "per_second" not in rate:
        return None
    here = (*path, "spec", "rate")
    for name, most in (("per_second", MOST_PER_SECOND), ("burst", MOST_BURST)):
        value = rate.get(name)
        if isinstance(value, int | float) and not 0 < value <= most:
            draft.report((*here, name), f"is not a number above 0, up to {most}")
    made = {name: draft.template((*here, name), value) for name, value in rate.items()}
    return RatePolicy(made["per_second"], made.get("burst"), made.get("key"))


def _checked(name: str, value: Json, most: int) -> float:
    try:
        number = 0.0
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number <= most:
        raise BadRate(f"spec.rate.{name} is {value!r}, not a number above 0, up to {most}")
    return number
