"""Versions of a business projection between which its readers are switched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from streams.events.model import Json
from streams.payload.port import Scope

Status = Literal["building", "shadow", "serving", "previous", "dropped"]
MAINTAINED: frozenset[Status] = frozenset(("building", "shadow", "serving", "previous"))
"""Versions that projectors fold for every execution that has the projection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionVersion:
    """One version of a projection of a scope, and what it is for."""

    scope: Scope
    projection: str
    version: int
    status: Status
    declaration: Mapping[str, Json]
    digest: str
    changed_at: datetime
    cutover_position: int | None = None
    """The position in the log up to which the other version served."""


class VersionReader(Protocol):
    """Reads which versions there are."""

    async def versions(self, scopes: Iterable[Scope]) -> Sequence[ProjectionVersion]:
        """Return the versions of scopes, by projection and version.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...


class NoVersions:
    """Versions of a store without any: every projection is served in its newest version."""

    async def versions(self, scopes: Iterable[Scope]) -> Sequence[ProjectionVersion]:
        """Return none."""
        return ()


NO_VERSIONS = NoVersions()


def served_version(versions: Iterable[ProjectionVersion], projection: str) -> int | None:
    """Return the version that readers see; None: the newest."""
    for one in versions:
        if one.projection == projection and one.status == "serving":
            return one.version
    return None
