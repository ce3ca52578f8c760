"""Rules of the versions of a projection: which follow from a command. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from streams.errors import Refused
from streams.events.model import Json
from streams.payload.port import Scope
from streams.playbook.declarations import declaration_digest
from streams.projector.business.port import ListedProjection
from streams.projector.business.versions import ProjectionVersion, Status

_BUILT: tuple[Status, ...] = ("building", "shadow")


class BadShadow(Refused):
    """The versions of the projection do not allow it."""


class Switch(NamedTuple):
    """From which version to which readers are switched."""

    serving: int
    other: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """What a command changes in the versions of one projection."""

    scope: Scope
    projection: str
    before: tuple[ProjectionVersion, ...]
    """All versions that the decision is based on."""
    after: tuple[ProjectionVersion, ...]
    """Those that are new, or other."""
    switch: Switch | None = None
    dropped: int | None = None
    """The version whose rows are deleted."""


class Versions:
    """The versions of one projection of a scope."""

    def __init__(self, scope: Scope, name: str, known: Iterable[ProjectionVersion]) -> None:
        self.scope, self.name = scope, name
        self.all = tuple(one for one in known if one.projection == name)

    def of(self, *statuses: Status) -> ProjectionVersion | None:
        """Return the version with one of these statuses."""
        return next((one for one in self.all if one.status in statuses), None)

    @property
    def serving(self) -> ProjectionVersion:
        """The version that readers see.

        Raises:
            BadShadow: no other version was ever built.
        """
        if (found := self.of("serving")) is None:
            raise BadShadow(
                f"projection {self.name!r} has no version in the shadow; build one: "
                f"streams projections shadow build {self.name} --version N"
            )
        return found

    @property
    def shadow(self) -> ProjectionVersion:
        """The version that was built.

        Raises:
            BadShadow: there is none, or it is not complete.
        """
        serving, found = self.serving, self.of(*_BUILT)
        if found is None:
            raise BadShadow(
                f"projection {self.name!r}: version {serving.version} serves, and no version is in "
                "the shadow; build one first"
            )
        if found.status == "building":
            raise BadShadow(
                f"projection {self.name!r} version {found.version} is not complete; run "
                f"`streams projections shadow build {self.name} --version {found.version}` again"
            )
        return found

    def build(
        self,
        declaration: Mapping[str, Json],
        version: int,
        listed: Sequence[ListedProjection],
        now: datetime,
    ) -> VersionChange:
        """Decide to build a version; the version below it serves.

        Raises:
            BadShadow: another version is in the way.
        """
        serving = self.of("serving") or self._newest_below(version, listed, now)
        if version <= serving.version:
            raise self._bad(
                version, f"version {serving.version} serves; a new one needs a higher number"
            )
        if (previous := self.of("previous")) is not None:
            raise self._bad(
                version,
                f"version {previous.version} is maintained for a rollback; drop it first: "
                f"streams projections shadow drop {self.name} --version {previous.version}",
            )
        other = self.of(*_BUILT)
        if other is not None and other.version != version:
            raise self._bad(version, f"version {other.version} is in the shadow; drop it first")
        digest = declaration_digest(declaration)
        if any(digest != one for one in self._digests(version, listed)):
            raise self._bad(
                version, "this version exists with another declaration; use the next number"
            )
        building = self._version(version, "building", declaration, now)
        after = [one for one in (serving,) if one not in self.all]
        if other is None:
            after.append(building)
        return self._change(*after)

    def built(self, now: datetime) -> VersionChange:
        """Decide that the version in the shadow is complete."""
        found = self.of("building")
        return self._change(*([] if found is None else [_as(found, "shadow", now)]))

    def cutover(self, now: datetime) -> VersionChange:
        """Decide to let the version in the shadow serve.

        Raises:
            BadShadow: there is none, or it is not complete.
        """
        serving, shadow = self.serving, self.shadow
        return self._change(
            _as(serving, "previous", now),
            _as(shadow, "serving", now),
            switch=Switch(serving.version, shadow.version),
        )

    def rollback(self, now: datetime) -> VersionChange:
        """Decide to let the previous version serve again.

        Raises:
            BadShadow: there is none.
        """
        serving, previous = self.serving, self.of("previous")
        if previous is None:
            raise BadShadow(
                f"projection {self.name!r}: version {serving.version} serves, and no version was "
                "cut over from; there is nothing to roll back to"
            )
        return self._change(
            _as(serving, "shadow", now),
            _as(previous, "serving", now),
            switch=Switch(serving.version, previous.version),
        )

    def drop(self, version: int, now: datetime) -> VersionChange:
        """Decide to give up a version that does not serve.

        Raises:
            BadShadow: it serves, or there is no such version.
        """
        found = next((one for one in self.all if one.version == version), None)
        if found is None or found.status == "dropped":
            raise BadShadow(f"projection {self.name!r} has no version {version} to drop")
        if found.status == "serving":
            raise BadShadow(f"projection {self.name!r} version {version} serves; roll back first")
        return self._change(_as(found, "dropped", now), dropped=version)

    def _newest_below(
        self, version: int, listed: Sequence[ListedProjection], now: datetime
    ) -> ProjectionVersion:
        below = [one for one in listed if one.name == self.name and one.version < version]
        newest = max((one.version for one in below), default=0)
        found = [one for one in below if one.version == newest]
        if len(found) != 1:
            why = (
                f"version {newest} has {len(found)} declarations; give one another name"
                if found
                else "no lower version has rows, so that nothing could serve meanwhile"
            )
            raise self._bad(version, why)
        return self._version(newest, "serving", found[0].declaration, now)

    def _digests(self, version: int, listed: Sequence[ListedProjection]) -> list[str]:
        stored = [one.digest for one in listed if (one.name, one.version) == (self.name, version)]
        return [*stored, *(one.digest for one in self.all if one.version == version)]

    def _version(
        self, version: int, status: Status, declaration: Mapping[str, Json], now: datetime
    ) -> ProjectionVersion:
        return ProjectionVersion(
            scope=self.scope,
            projection=self.name,
            version=version,
            status=status,
            declaration=declaration,
            digest=declaration_digest(declaration),
            changed_at=now,
        )

    def _change(
        self, *after: ProjectionVersion, switch: Switch | None = None, dropped: int | None = None
    ) -> VersionChange:
        return VersionChange(
            scope=self.scope,
            projection=self.name,
            before=self.all,
            after=after,
            switch=switch,
            dropped=dropped,
        )

    def _bad(self, version: int, why: str) -> BadShadow:
        return BadShadow(f"projection {self.name!r} version {version} cannot be built: {why}")


def _as(version: ProjectionVersion, status: Status, now: datetime) -> ProjectionVersion:
    return replace(version, status=status, changed_at=now)
