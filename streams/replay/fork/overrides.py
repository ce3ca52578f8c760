"""Values of a state that a fork sets: of the workload, or `ctx.NAME`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from streams.events.model import Json
from streams.replay.fork.errors import BadOverride
from streams.results.limits import VALUES_BYTES

CTX = "ctx."


@dataclass(frozen=True, slots=True)
class Overrides:
    """Values to set, by their paths."""

    workload: Mapping[str, Json]
    ctx: Mapping[str, Json]

    @classmethod
    def of(cls, given: Mapping[str, Json]) -> Overrides:
        """Split values by whether their path begins with `ctx.`.

        Raises:
            BadOverride: they are too large for an event.
        """
        if (size := len(orjson.dumps(dict(given)))) > VALUES_BYTES:
            raise BadOverride(
                f"the values to set have {size} bytes, at most {VALUES_BYTES} are possible; "
                "set a part of them"
            )
        ctx = {path.removeprefix(CTX): v for path, v in given.items() if path.startswith(CTX)}
        return cls({path: v for path, v in given.items() if not path.startswith(CTX)}, ctx)

    def to_json(self) -> dict[str, Json]:
        """Return them as they were given."""
        return {**self.workload, **{f"{CTX}{path}": one for path, one in self.ctx.items()}}


def with_values(
    what: str, values: Mapping[str, Json], changes: Mapping[str, Json], defaults: Mapping[str, Json]
) -> dict[str, Json]:
    """Return values after changes at dotted paths; each path must exist in values or defaults.

    Raises:
        BadOverride: a path does not exist.
    """
    found = dict(values)
    for path, value in changes.items():
        first, *rest = path.split(".")
        if first not in found and first not in defaults:
            raise _unknown(what, path, first, {**defaults, **found})
        at: Json = found.get(first, defaults.get(first))
        found[first] = _set(what, path, at, rest, value)
    return found


def _set(what: str, path: str, at: Json, rest: Sequence[str], value: Json) -> Json:
    if not rest:
        return value
    name, *deeper = rest
    if not isinstance(at, dict) or name not in at:
        raise _unknown(what, path, name, at if isinstance(at, dict) else {})
    return {**at, name: _set(what, path, at[name], deeper, value)}


def _unknown(what: str, path: str, name: str, known: Mapping[str, Json]) -> BadOverride:
    there = ", ".join(sorted(known)) or "nothing"
    return BadOverride(f"{what} {path!r}: there is no {name!r}; there is {there}")
