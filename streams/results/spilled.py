"""Named values that no event can carry: groups of names, each with the payload that has them.

They are kept beside the values they would be among (`args`, `ctx`), never in their place: an
author's own value can look like anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from streams.events.locator import Locator
from streams.events.model import PayloadRef
from streams.payload.port import JSON, Scope
from streams.playbook.views import METHODS

Group = dict[str, Any]
"""`names`, and `sha256` and `bytes` of the payload: a JSON mapping that has them."""


def group_of(names: Collection[str], ref: PayloadRef) -> Group:
    """Return what an event says of values that are in a payload."""
    return {"names": sorted(names), "sha256": ref.sha256, "bytes": ref.byte_length}


def merged(
    values: Mapping[str, Any],
    groups: Sequence[Group],
    changes: Mapping[str, Any],
    changed: Sequence[Group],
) -> tuple[dict[str, Any], list[Group]]:
    """Return values and groups after changes; a name is in one place only."""
    moved = {name for group in changed for name in group["names"]}
    kept = {name: value for name, value in values.items() if name not in moved}
    left = []
    for group in groups:
        names = [one for one in group["names"] if one not in changes and one not in moved]
        if names:
            left.append({**group, "names": names})
    return {**kept, **changes}, [*left, *changed]


def sought(
    groups: Sequence[Group], names: Collection[str] | None, owner: Scope
) -> Iterator[tuple[list[str], PayloadRef]]:
    """Yield the payloads that have some of these names, and which; None: all names."""
    for group in groups:
        found = [one for one in group["names"] if names is None or one in names]
        if found:
            yield found, _payload(group, owner)


def names_read(name: str, ways: Collection[Sequence[str]]) -> set[str] | None:
    """Return which values under `name` templates go into; None: any of them."""
    return names_in([way[1:] for way in ways if way[0] == name])


def names_in(keys: Collection[Sequence[str]]) -> set[str] | None:
    """Return the names that these ways into a mapping begin with; None: it may be any."""
    if any(not key or key[0] in METHODS for key in keys):
        return None
    return {key[0] for key in keys}


def _payload(group: Group, owner: Scope) -> PayloadRef:
    digest = str(group["sha256"])
    return PayloadRef(
        uri=str(Locator.payload(owner.tenant_id, owner.organization_id, digest)),
        sha256=digest,
        media_type=JSON,
        byte_length=int(group["bytes"]),
    )
