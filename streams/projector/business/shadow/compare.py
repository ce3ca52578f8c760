"""Comparison of two versions of a projection, key by key, over all executions of a scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import orjson
from blake3 import blake3

from streams.events.model import Json
from streams.projector.business.port import BusinessReader, KeyedFold, Places
from streams.projector.business.reading import MergedRow, merged_row
from streams.projector.business.rows import BusinessStateRow
from streams.projector.business.shadow.difference import DeclaredDifference, declared_difference
from streams.projector.business.versions import ProjectionVersion

PAGE = 500
SAMPLES = 10
ROWS = "row_count"


class ComparedVersion(NamedTuple):
    """One of the two versions."""

    version: ProjectionVersion
    fold: KeyedFold


@dataclass(frozen=True, slots=True)
class DifferentRow:
    """A key whose rows differ; None: the version has no such key."""

    key: Mapping[str, Json]
    serving: Mapping[str, Json] | None
    shadow: Mapping[str, Json] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the version in the shadow differs from the one that serves."""

    projection: str
    serving: int
    shadow: int
    places: Places
    declared: DeclaredDifference
    keys: int
    equal: int
    only_serving: int
    only_shadow: int
    columns: Mapping[str, int]
    """How many rows differ in each column that both have."""
    serving_checksum: str
    shadow_checksum: str
    samples: tuple[DifferentRow, ...]

    @property
    def is_equal(self) -> bool:
        """Readers see the same rows."""
        return self.serving_checksum == self.shadow_checksum

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Differences that the declarations do not explain."""
        if self.declared.is_of_rows:
            return ()
        lines = [
            f"{count} rows differ in {column}"
            for column, count in sorted(self.columns.items())
            if column not in self.declared.columns
        ]
        if self.only_serving:
            lines.append(f"{self.only_serving} keys are only in version {self.serving}")
        if self.only_shadow:
            lines.append(f"{self.only_shadow} keys are only in version {self.shadow}")
        return tuple(lines)


async def compare(
    reader: BusinessReader, serving: ComparedVersion, shadow: ComparedVersion
) -> Comparison:
    """Compare two versions; `reader` sees one moment.

    Raises:
        Unavailable: the tables cannot be reached.
    """
    one, other = serving.version, shadow.version
    places = await reader.places(one.scope, one.projection, one.version, other.version)
    found = _Counts(serving, shadow)
    after: list[Json] | None = None
    while True:
        versions = [one.version, other.version]
        page = await reader.page(
            one.scope, one.projection, versions, wanted={}, after=after, limit=PAGE
        )
        for _, states in groupby(page.states, key=lambda state: state.key_digest):
            found.add(list(states))
        after = page.next
        if after is None:
            return found.comparison(places)


class _Counts:
    """Counts differences, key by key."""

    def __init__(self, serving: ComparedVersion, shadow: ComparedVersion) -> None:
        self._sides = (serving, shadow)
        self._declared = declared_difference(serving.version, shadow.version)
        self._digests = (blake3(), blake3())
        self._keys = self._equal = 0
        self._only = [0, 0]
        self._columns: Counter[str] = Counter()
        self._samples: list[DifferentRow] = []

    def add(self, states: Sequence[BusinessStateRow]) -> None:
        """Add the states of one key."""
        rows = [
            merged_row(fold, own)
            if (own := [state for state in states if state.version == version.version])
            else None
            for version, fold in self._sides
        ]
        self._keys += 1
        for digest, row in zip(self._digests, rows, strict=True):
            if row is not None:
                digest.update(_text(row))
        serving, shadow = rows
        if serving is not None and shadow is not None:
            differing = _differing(serving, shadow)
            self._columns.update(differing)
            if not differing:
                self._equal += 1
                return
        else:
            self._only[0 if shadow is None else 1] += 1
        if len(self._samples) < SAMPLES:
            key = next(row.key for row in rows if row is not None)
            self._samples.append(DifferentRow(key, _columns(serving), _columns(shadow)))

    def comparison(self, places: Places) -> Comparison:
        """Return the result."""
        serving, shadow = (side.version for side in self._sides)
        checksums = [one.hexdigest() for one in self._digests]
        return Comparison(
            projection=serving.projection,
            serving=serving.version,
            shadow=shadow.version,
            places=places,
            declared=self._declared,
            keys=self._keys,
            equal=self._equal,
            only_serving=self._only[0],
            only_shadow=self._only[1],
            columns=dict(self._columns),
            serving_checksum=checksums[0],
            shadow_checksum=checksums[1],
            samples=tuple(self._samples),
        )


def _differing(serving: MergedRow, shadow: MergedRow) -> list[str]:
    """Return the columns that both have, with other values."""
    shared = serving.values.keys() & shadow.values.keys()
    found = [one for one in sorted(shared) if serving.values[one] != shadow.values[one]]
    return found if serving.row_count == shadow.row_count else [*found, ROWS]


def _columns(row: MergedRow | None) -> Mapping[str, Json] | None:
    return None if row is None else {**row.values, ROWS: row.row_count}


def _text(row: MergedRow) -> bytes:
    return orjson.dumps([row.key, _columns(row)], option=orjson.OPT_SORT_KEYS)
