"""What two declarations of a projection say to differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from blake3 import blake3

from streams.events.model import Json
from streams.projector.business.versions import ProjectionVersion

_PARTS = ("source", "key", "where")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredDifference:
    """The difference of two declarations; a cut-over over it must be accepted by its digest."""

    lines: tuple[str, ...]
    columns: frozenset[str]
    """Columns that were added, removed or changed."""
    is_of_rows: bool
    """Source, key, filter or code differ: any row may."""
    digest: str


def declared_difference(old: ProjectionVersion, new: ProjectionVersion) -> DeclaredDifference:
    """Return how a declaration differs from an older one."""
    first, second = old.declaration, new.declaration
    parts = [
        f"{part}: {_text(first.get(part))} -> {_text(second.get(part))}"
        for part in _PARTS
        if first.get(part) != second.get(part)
    ]
    if "plugin" in first or "plugin" in second:
        parts.append(f"code: {_code(old)} -> {_code(new)}")
    before, after = _aggregates(first), _aggregates(second)
    columns = sorted(one for one in {*before, *after} if before.get(one) != after.get(one))
    lines = [
        f"column {one}: {_text(before.get(one))} -> {_text(after.get(one))}" for one in columns
    ]
    return DeclaredDifference(
        lines=(*parts, *lines),
        columns=frozenset(columns),
        is_of_rows=bool(parts),
        digest=blake3(f"{old.digest}/{new.digest}".encode()).hexdigest()[:16],
    )


def _code(version: ProjectionVersion) -> str:
    plugin = version.declaration.get("plugin", "the playbook's declaration")
    return f"{plugin} version {version.version}"


def _aggregates(declaration: Mapping[str, Json]) -> Mapping[str, Json]:
    found = declaration.get("aggregates")
    return found if isinstance(found, dict) else {}


def _text(value: Json) -> str:
    return "none" if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
