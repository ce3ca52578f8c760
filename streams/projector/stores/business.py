"""Business projections in a projection store: their states, and how far they were folded."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import orjson

from streams.events.model import Json
from streams.payload.port import Scope
from streams.projector.business.port import ListedProjection, StateId, StatesPage
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.values import key_digest
from streams.projector.stores.port import (
    DamagedProjection,
    ErasedRecords,
    Pagination,
    UnknownStoredProjection,
)
from streams.projector.stores.records import Lineage, ProjectionRecord
from streams.projector.stores.sealed import SealedProjections

_log = logging.getLogger(__name__)
PROGRESS = "progress"
"""The type of the records that say how far an execution was folded."""
_PLACE_CHARS = 1000
"""Longer keys are ordered by their beginning, then by their digest."""
_PAGE = 1000
_JSON = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z
BusinessRow = BusinessStateRow | BusinessProgressRow


class StoredBusiness:
    """Writes states and progress of a batch in one transaction of the store, and reads them."""

    def __init__(self, name: str, store: SealedProjections) -> None:
        """`name`: of the store, in the settings."""
        self.name, self._store = name, store

    async def save(self, rows: Iterable[BusinessRow]) -> None:
        """Write rows; older ones than the stored ones are ignored."""
        await self._store.save_projection([_record(one) for one in rows])

    async def replace(
        self, execution_id: int, through_seq: int, rows: Iterable[BusinessRow]
    ) -> None:
        """Delete an execution's rows as of `through_seq` or before, and write others."""
        erased = ErasedRecords(execution_id, through_seq)
        await self._store.save_projection([_record(one) for one in rows], erased=erased)

    async def clear(self) -> None:
        """Delete every row."""
        await self._store.save_projection([], erased=ErasedRecords())

    async def progress(self, execution_ids: Iterable[int]) -> Sequence[BusinessProgressRow]:
        """Return how far the projections of executions were folded.

        A damaged row is left out: its execution is folded again from its first event.
        """
        found: list[BusinessProgressRow] = []
        ids = list(execution_ids)
        try:
            found += map(_progress_row, await self._store.load_executions(ids, PROGRESS))
        except DamagedProjection as error:
            if len(ids) == 1:
                _log.error("store %s: %s", self.name, error)
                return found
            for one in ids:
                found += await self.progress([one])
        return found

    async def states(self, ids: Sequence[StateId]) -> Sequence[BusinessStateRow]:
        """Return the states that exist."""
        found = await self._store.load_projection([_state_id(one) for one in ids])
        return [_state_row(one) for one in found]

    async def projections(self, scope: Scope) -> Sequence[ListedProjection]:
        """Return the projections, by name and version."""
        found: dict[tuple[str, int, str], ListedProjection] = {}
        async for row in self._progress_of(scope):
            key = (row.projection, row.version, row.declaration_digest)
            known = found.get(key) or ListedProjection(
                row.projection, row.version, row.declaration, key[2], 0, 0, 0, store=self.name
            )
            found[key] = known._replace(
                executions=known.executions + 1,
                problems=known.problems + bool(row.problems),
                last_position=max(known.last_position, row.last_position),
            )
        return [found[key] for key in sorted(found)]

    async def page(
        self,
        scope: Scope,
        projection: str,
        versions: Sequence[int],
        *,
        wanted: Mapping[int, str],
        after: Sequence[Json] | None,
        limit: int,
    ) -> StatesPage:
        """Return the states of up to `limit` keys, by key, version and execution."""
        filters = {str(place): text for place, text in wanted.items()}
        groups: dict[tuple[str, str], list[BusinessStateRow]] = {}
        for version in versions:
            kind, found = _type(projection, version), 0
            async for key, rows in self._keys(scope, kind, filters, after):
                groups.setdefault(key, []).extend(rows)
                found += 1
                if found > limit:
                    break
        shown = [groups[key] for key in sorted(groups)][:limit]
        last = shown[-1][0].key_values if len(groups) > limit else None
        return StatesPage([row for rows in shown for row in rows], last)

    async def _keys(
        self, scope: Scope, kind: str, filters: Mapping[str, str], after: Sequence[Json] | None
    ) -> AsyncIterator[tuple[tuple[str, str], list[BusinessStateRow]]]:
        """Yield the states of each key after one, with its place in the order of keys."""
        # The ids of a key's states are its digest and "/", which "0" follows.
        start = None if after is None else (_place(after), f"{key_digest(after)}0")
        key, rows = ("", ""), list[BusinessStateRow]()
        async for record in self._records(scope, kind, filters, start):
            row = _state_row(record)
            if rows and row.key_digest != key[1]:
                yield key, rows
                rows = []
            key = (record.place, row.key_digest)
            rows.append(row)
        if rows:
            yield key, rows

    async def _progress_of(self, scope: Scope) -> AsyncIterator[BusinessProgressRow]:
        async for record in self._records(scope, PROGRESS, {}, None):
            yield _progress_row(record)

    async def _records(
        self, scope: Scope, kind: str, filters: Mapping[str, str], after: tuple[str, str] | None
    ) -> AsyncIterator[ProjectionRecord]:
        while True:
            page = Pagination(after, _PAGE)
            try:
                found = [one async for one in self._store.query(scope, kind, filters, page)]
            except UnknownStoredProjection:
                return
            for one in found:
                yield one
            if len(found) < _PAGE:
                return
            after = found[-1].at


def _record(row: BusinessRow) -> ProjectionRecord:
    if isinstance(row, BusinessProgressRow):
        return ProjectionRecord(
            projection_id=f"{PROGRESS}/{row.execution_id}/{_type(row.projection, row.version)}",
            projection_type=PROGRESS,
            version=row.last_seq,
            place=f"{row.execution_id:019d}",
            state=orjson.dumps(row, option=_JSON),
            lineage=_lineage(row, 0),
        )
    return ProjectionRecord(
        projection_id=_state_id(StateId(*row.key)),  # type: ignore[arg-type]  # a tuple of columns
        projection_type=_type(row.projection, row.version),
        version=row.last_seq,
        place=_place(row.key_values),
        columns=_columns(row),
        state=orjson.dumps(row, option=_JSON),
        lineage=_lineage(row, row.first_position),
    )


def _lineage(row: BusinessRow, first_position: int) -> Lineage:
    return Lineage(
        tenant_id=row.tenant_id,
        organization_id=row.organization_id,
        execution_id=row.execution_id,
        first_position=first_position,
        last_position=row.last_position,
        projection_version=row.version,
    )


def _type(projection: str, version: int) -> str:
    return f"{projection}.v{version}"


def _state_id(one: StateId) -> str:
    """Return a record's id; the digest is first, so that the states of a key lie together."""
    return f"{one.key_digest}/{_type(one.projection, one.version)}/{one.execution_id}"


def _columns(row: BusinessStateRow) -> dict[str, str]:
    """Return the parts of the key as text, by their place in it."""
    texts = {str(place): _text(value) for place, value in enumerate(row.key_values)}
    return {place: text for place, text in texts.items() if text is not None}


def _text(value: Json) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _place(key: Sequence[Json]) -> str:
    """Return the order of a key: nulls, texts by code point, integers, false, true."""
    return "".join(map(_part, key))[:_PLACE_CHARS]


def _part(value: Json) -> str:
    """Return ASCII text in the order of values; "." ends a text and is less than a digit."""
    match value:
        case None:
            return "0"
        case bool():
            return "31" if value else "30"
        case int():
            return f"2{value + 2**63:016x}"
        case _:
            return f"1{str(value).encode().hex()}."


def _state_row(record: ProjectionRecord) -> BusinessStateRow:
    return BusinessStateRow(**orjson.loads(record.state))


def _progress_row(record: ProjectionRecord) -> BusinessProgressRow:
    return BusinessProgressRow(**orjson.loads(record.state))
