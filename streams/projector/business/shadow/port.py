"""Port of the versions of projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from streams.errors import Refused
from streams.projector.business.port import Places
from streams.projector.business.shadow.core import Switch, VersionChange
from streams.projector.business.versions import ProjectionVersion, VersionReader


class VersionsChanged(Refused):
    """Another command changed the versions meanwhile."""


class NotCaughtUp(Refused):
    """A version has fewer events than the one that serves."""


class VersionStore(VersionReader, Protocol):
    """Stores the versions of projections."""

    async def change(self, change: VersionChange) -> Sequence[ProjectionVersion]:
        """Apply a decision, all or nothing; return the changed versions as stored.

        A reader sees the versions before it or those after it. A switch records the position
        up to which the other version served.

        Raises:
            VersionsChanged: the versions are not those that the decision is based on.
            NotCaughtUp: the version to switch to lacks events; nothing was changed.
            Unavailable: nothing was changed; retrying is safe.
        """
        ...


def check_unchanged(change: VersionChange, found: Sequence[ProjectionVersion]) -> None:
    """Raise VersionsChanged if `found` is not what a decision is based on."""
    if tuple(found) != change.before:
        raise VersionsChanged(
            f"projection {change.projection!r}: another command changed its versions; try again"
        )


def switched(
    change: VersionChange, switch: Switch, places: Places
) -> tuple[ProjectionVersion, ...]:
    """Return the versions after a switch, with its position.

    Raises:
        NotCaughtUp: the version to switch to lacks events.
    """
    if places.behind:
        raise NotCaughtUp(
            f"projection {change.projection!r} version {switch.other} lacks events of "
            f"{places.behind} of {places.executions} executions, such as {places.first_apart}; do "
            "all projectors run this version of streams, with the packages of the projection? "
            "Build it again: `streams projections shadow build`"
        )
    return tuple(
        replace(one, cutover_position=places.position) if one.status == "serving" else one
        for one in change.after
    )


class ParityReport(NamedTuple):
    """A version as stored, compared with a replay of the log."""

    executions: int
    events: int
    failures: tuple[str, ...]
    """The first executions that differ, and how."""


class VersionParity(Protocol):
    """Compares what is stored of a version with a replay of verified events and payloads."""

    async def check(self, version: ProjectionVersion) -> ParityReport:
        """Return the comparison over all executions of the version's scope.

        Raises:
            Inconsistent: the log was tampered with.
            Unavailable: log, tables or payloads cannot be read; retrying is safe.
        """
        ...
