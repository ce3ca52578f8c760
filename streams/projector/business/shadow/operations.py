"""What an operator does with the versions of a projection: compare, cut over, roll back, drop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streams.clock import Clock
from streams.errors import Refused
from streams.payload.port import Scope
from streams.projector.business.port import Places, ReadableBusiness
from streams.projector.business.reading import BusinessQueries
from streams.projector.business.shadow.compare import ComparedVersion, Comparison, compare
from streams.projector.business.shadow.core import VersionChange, Versions
from streams.projector.business.shadow.port import (
    NotCaughtUp,
    ParityReport,
    VersionParity,
    VersionStore,
)
from streams.projector.business.versions import ProjectionVersion

STEP_S = 0.2


class UndeclaredDifference(Refused):
    """Versions differ where their declarations are equal."""


class DifferenceNotAccepted(Refused):
    """Versions differ as declared, and nobody accepted that."""


class NoParity(Refused):
    """What is stored differs from a replay of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutover:
    """A cut-over, done or planned."""

    change: VersionChange
    comparison: Comparison
    parity: ParityReport | None
    """None: not required."""
    is_dry_run: bool
    """Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionState:
    """The versions of one projection, and how far the other one is."""

    projection: str
    versions: Sequence[ProjectionVersion]
    places: Places | None
    """Of the serving version and the one beside it."""


class ShadowOperations:
    """Operations on the versions of one scope's projections."""

    def __init__(
        self,
        store: VersionStore,
        reader: ReadableBusiness,
        queries: BusinessQueries,
        clock: Clock,
        scope: Scope,
        *,
        parity: VersionParity | None,
        within_s: float = 30.0,
    ) -> None:
        """`parity`: required before a cut-over. `within_s`: how long projectors may take to get
        both versions of each execution to one place.
        """
        self._store, self._reader, self._queries = store, reader, queries
        self._clock, self._scope, self._parity = clock, scope, parity
        self._within_s = within_s

    async def versions(self, name: str) -> Versions:
        """Return the versions of a projection."""
        return Versions(self._scope, name, await self._store.versions([self._scope]))

    async def status(self, name: str | None = None) -> list[VersionState]:
        """Return the state of each projection that has several versions."""
        async with self._reader.snapshot() as reader:
            known = await reader.versions([self._scope])
            states = []
            for one in sorted({one.projection for one in known}):
                found = Versions(self._scope, one, known)
                other = found.of("building", "shadow", "previous")
                serving = found.of("serving")
                places = None
                if other is not None and serving is not None:
                    versions = (serving.version, other.version)
                    places = await reader.places(self._scope, one, *versions)
                states.append(VersionState(projection=one, versions=found.all, places=places))
        return [one for one in states if name in (None, one.projection)]

    async def compare(self, name: str) -> Comparison:
        """Compare the version in the shadow with the one that serves, at one place.

        Raises:
            BadShadow: there is none, or it is not complete.
            NotCaughtUp: projectors do not get both to one place.
        """
        deadline = self._clock.monotonic() + self._within_s
        while True:
            async with self._reader.snapshot() as reader:
                versions = Versions(self._scope, name, await reader.versions([self._scope]))
                sides = [self._side(versions.serving), self._side(versions.shadow)]
                numbers = [side.version.version for side in sides]
                places = await reader.places(self._scope, name, numbers[0], numbers[1])
                if not places.apart:
                    return await compare(reader, *sides)
            if self._clock.monotonic() >= deadline:
                raise NotCaughtUp(
                    f"projection {name!r}: versions {numbers[0]} and {numbers[1]} have different "
                    f"events of {places.apart} executions, such as {places.first_apart}; is a "
                    "projector running, with the packages of the projection? Else build it again"
                )
            await asyncio.sleep(STEP_S)

    async def cutover(
        self, name: str, *, accepted: str | None = None, is_dry_run: bool = False
    ) -> Cutover:
        """Let the version in the shadow serve.

        Raises:
            BadShadow: there is none, or it is not complete.
            UndeclaredDifference: rows differ though the declarations do not.
            DifferenceNotAccepted: `accepted` is not the digest of the declared difference.
            NoParity: what is stored is not what the log gives.
            NotCaughtUp: it lacks events.
        """
        comparison = await self.compare(name)
        _check(comparison, accepted)
        shadow = (await self.versions(name)).shadow
        report = None if self._parity is None else await self._proven(self._parity, shadow)
        change = (await self.versions(name)).cutover(self._clock.now())
        applied = change if is_dry_run else await self._applied(change)
        return Cutover(change=applied, comparison=comparison, parity=report, is_dry_run=is_dry_run)

    async def rollback(self, name: str, *, is_dry_run: bool = False) -> VersionChange:
        """Let the previous version serve again.

        Raises:
            BadShadow: there is none.
            NotCaughtUp: it lacks events.
        """
        change = (await self.versions(name)).rollback(self._clock.now())
        return change if is_dry_run else await self._applied(change)

    async def drop(self, name: str, version: int, *, is_dry_run: bool = False) -> VersionChange:
        """Give up a version that does not serve, and delete its rows.

        Raises:
            BadShadow: it serves, or there is none.
        """
        change = (await self.versions(name)).drop(version, self._clock.now())
        return change if is_dry_run else await self._applied(change)

    async def _applied(self, change: VersionChange) -> VersionChange:
        """Apply a decision; return it with its versions as stored."""
        return replace(change, after=tuple(await self._store.change(change)))

    def _side(self, version: ProjectionVersion) -> ComparedVersion:
        fold = self._queries.fold(version.projection, version.version, version.declaration)
        return ComparedVersion(version, fold)

    async def _proven(self, parity: VersionParity, version: ProjectionVersion) -> ParityReport:
        report = await parity.check(version)
        if report.failures:
            raise NoParity(
                f"projection {version.projection!r} version {version.version} is not what a replay "
                f"of the log gives: {'; '.join(report.failures)}. Check these executions with "
                "`streams replay verify`, and build it again; the setting "
                "event_store.replay.require_projection_parity requires this"
            )
        return report


def _check(comparison: Comparison, accepted: str | None) -> None:
    name, versions = comparison.projection, f"{comparison.serving} and {comparison.shadow}"
    if comparison.undeclared:
        raise UndeclaredDifference(
            f"projection {name!r}: versions {versions} differ where their declarations do not: "
            f"{'; '.join(comparison.undeclared)}. See `streams projections shadow compare {name}`"
        )
    declared = comparison.declared
    if not comparison.is_equal and accepted != declared.digest:
        raise DifferenceNotAccepted(
            f"projection {name!r}: versions {versions} differ as declared: "
            f"{'; '.join(declared.lines)}. To accept this: --accept {declared.digest}"
        )
