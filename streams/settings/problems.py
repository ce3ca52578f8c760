"""Problems in the settings, with place, key and advice."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from streams.errors import Refused
from streams.masking import mask_text
from streams.settings.layers import Path
from streams.settings.mask import is_secret

OriginOf = Callable[[Path], str | None]


@dataclass(frozen=True, slots=True, order=True)
class SettingsProblem:
    """One problem: its place, its key, and what to do about it."""

    origin: str
    key: str
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.origin, self.key, self.what) if part)


def _place(problem: SettingsProblem) -> tuple[str, int]:
    """Return the sort key of a problem: file, then line."""
    name, _, line = problem.origin.rpartition(":")
    return (name, int(line)) if line.isdigit() else (problem.origin, 0)


class BadSettings(Refused):
    """The settings are not valid; every problem is listed."""

    def __init__(self, problems: Sequence[SettingsProblem]) -> None:
        self.problems = tuple(sorted(problems, key=_place))
        if len(self.problems) == 1:
            super().__init__(f"bad setting at {self.problems[0]}")
        else:
            lines = "".join(f"\n  {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} bad settings:{lines}")


def explain(
    error: ValidationError, model: type[BaseModel], origin: OriginOf
) -> list[SettingsProblem]:
    """Convert pydantic's errors into problems with places."""
    return [_explain_one(details, model, origin) for details in error.errors()]


def _explain_one(
    details: ErrorDetails, model: type[BaseModel], origin: OriginOf
) -> SettingsProblem:
    path = tuple(str(part) for part in details["loc"] if part != "[key]")
    if details["type"] == "extra_forbidden":
        what = _unknown_key(path[-1], keys_at(model, path[:-1]))
    else:
        what = _wrong_value(details, path)
    return SettingsProblem(origin(path) or "settings", ".".join(path), what)


def _unknown_key(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"unknown key; did you mean '{close[0]}'?"
    return f"unknown key; known here: {', '.join(known)}"


def keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """Return the valid keys of the section at `path`."""
    here: Any = model
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(part)
            here = field.annotation if field else None
        else:  # a mapping of arbitrary names: the type of its values
            here = next((arg for arg in get_args(here)[1:]), None)
    return (
        list(here.model_fields) if isinstance(here, type) and hasattr(here, "model_fields") else []
    )


_SAID_PLAINLY: Mapping[str, str] = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a section, with keys of its own",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "missing": "is missing",
    "model_type": "must be a section, with keys of its own",
    "string_too_short": "must not be empty",
    "string_type": "must be text (put quotes around it)",
    "tuple_type": "must be a list",
}


def _wrong_value(details: ErrorDetails, path: Path) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if details["input"] is None and kind in _SAID_PLAINLY:
        return "must not be empty"
    if kind == "literal_error":
        what = f"must be {context['expected']}"
    elif kind == "string_pattern_mismatch":
        what = "must be made of letters, digits, '_' and '-'"
    elif kind in ("greater_than_equal", "less_than_equal"):
        bound = context.get("ge", context.get("le"))
        what = f"must be {'at least' if 'ge' in context else 'at most'} {bound}"
    else:
        what = _SAID_PLAINLY.get(kind, details["msg"])
    # The value in place of a section is not shown: it may be a misplaced password.
    if kind in ("missing", "model_type", "dict_type"):
        return what
    return what + _instead_of(details["input"], path)


def _instead_of(value: object, path: Path) -> str:
    """Return a short wrong value for a message; never a secret or a whole section."""
    if is_secret(path) or isinstance(value, (dict, list, BaseModel)) or value == "":
        return ""
    if isinstance(value, str):
        return f", not {mask_text(value)[:80]!r}"
    return f", not {str(value).lower()}"
