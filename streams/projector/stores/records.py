"""Projections as stored: a state, its place in queries, its lineage and its checksum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson
from blake3 import blake3

from streams.payload.port import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Whose events a state comes from, and which."""

    tenant_id: str
    organization_id: str
    execution_id: int | None
    """None: it is not of one execution, or a snapshot, which a rebuild leaves alone."""
    first_position: int
    last_position: int
    projection_version: int

    @property
    def scope(self) -> Scope:
        """Tenant and organization."""
        return Scope(self.tenant_id, self.organization_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionRecord:
    """One state of a projection."""

    projection_id: str
    """Unique in the store; it holds an id of the log, such as that of the execution."""
    projection_type: str
    version: int
    """The `seq` of the last event in the state: an equal or older one replaces nothing."""
    place: str = ""
    """ASCII: queries are in the order of places, then of ids."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What queries filter by."""
    state: bytes
    lineage: Lineage

    @property
    def at(self) -> tuple[str, str]:
        """Where a query continues after this record."""
        return (self.place, self.projection_id)


class SealedRecord(NamedTuple):
    """A record with its checksum, as adapters store it: the fields are the columns."""

    projection_id: str
    projection_type: str
    tenant_id: str
    organization_id: str
    execution_id: int | None
    version: int
    place: str
    labels: list[str]
    """The columns to filter by, each as a JSON list of name and value."""
    state: bytes
    first_position: int
    last_position: int
    projection_version: int
    checksum: str

    @property
    def at(self) -> tuple[str, str]:
        """Its place in queries."""
        return (self.place, self.projection_id)

    def replaces(self, known: SealedRecord | None) -> bool:
        """Return whether it is written over what is stored: a newer state of the same scope."""
        if known is None:
            return True
        is_same_scope = (self.tenant_id, self.organization_id) == (
            known.tenant_id,
            known.organization_id,
        )
        return is_same_scope and self.version > known.version


def labels_of(columns: Mapping[str, str]) -> list[str]:
    """Return columns as labels, in order."""
    return sorted(orjson.dumps(one).decode() for one in columns.items())


def seal(record: ProjectionRecord) -> SealedRecord:
    """Return a record with its checksum."""
    lineage = record.lineage
    blank = SealedRecord(
        projection_id=record.projection_id,
        projection_type=record.projection_type,
        tenant_id=lineage.tenant_id,
        organization_id=lineage.organization_id,
        execution_id=lineage.execution_id,
        version=record.version,
        place=record.place,
        labels=labels_of(record.columns),
        state=record.state,
        first_position=lineage.first_position,
        last_position=lineage.last_position,
        projection_version=lineage.projection_version,
        checksum="",
    )
    return blank._replace(checksum=checksum_of_record(blank))


def checksum_of_record(sealed: SealedRecord) -> str:
    """Return the checksum over everything that is stored: state, lineage and place."""
    content = sealed._replace(state=blake3(sealed.state).digest(), checksum="")
    return blake3(orjson.dumps(list(content), default=bytes.hex)).hexdigest()


def unsealed(sealed: SealedRecord) -> ProjectionRecord:
    """Return the record; its checksum was checked."""
    return ProjectionRecord(
        projection_id=sealed.projection_id,
        projection_type=sealed.projection_type,
        version=sealed.version,
        place=sealed.place,
        columns=dict(orjson.loads(one) for one in sealed.labels),
        state=sealed.state,
        lineage=Lineage(
            tenant_id=sealed.tenant_id,
            organization_id=sealed.organization_id,
            execution_id=sealed.execution_id,
            first_position=sealed.first_position,
            last_position=sealed.last_position,
            projection_version=sealed.projection_version,
        ),
    )
