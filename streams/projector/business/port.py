"""Values and ports of business projections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from streams.events.model import Json
from streams.payload.port import Scope
from streams.playbook.declarations import Source
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.versions import Status, VersionReader


class SourceRow(NamedTuple):
    """A row of the source; its place is its event's position in the log, and its number there."""

    values: Mapping[str, object]
    position: int
    row: int


class KeyedFold(Protocol):
    """A projection by key: pure. The same rows give the same state.

    `merge` joins states of disjoint rows, in any order with the same outcome; a fold in parts
    equals a fold as a whole.
    """

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def version(self) -> int:
        """Its version."""
        ...

    @property
    def source(self) -> Source:
        """Where its rows come from."""
        ...

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of its key."""
        ...

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads: one that no row of a payload has is a problem."""
        ...

    def describe(self) -> Mapping[str, Json]:
        """Return its declaration as JSON."""
        ...

    def accepts(self, row: Mapping[str, object]) -> bool:
        """Return whether a row counts."""
        ...

    def fold(self, rows: Sequence[SourceRow]) -> Json:
        """Return the state of rows of one key, which are in order.

        Raises:
            PoisonRecord: it cannot fold them.
        """
        ...

    def merge(self, one: Json, other: Json) -> Json:
        """Return the state of the rows of both."""
        ...

    def result(self, state: Json) -> Mapping[str, Json]:
        """Return the columns that readers see."""
        ...


class StateId(NamedTuple):
    """The primary key of a stored state."""

    execution_id: int
    projection: str
    version: int
    key_digest: str


class BusinessStates(Protocol):
    """Reads stored states, for the projector that continues them.

    Both methods raise Unavailable when the store cannot be reached.
    """

    async def progress(self, execution_ids: Iterable[int]) -> Sequence[BusinessProgressRow]:
        """Return how far the projections of executions were folded."""
        ...

    async def states(self, ids: Sequence[StateId]) -> Sequence[BusinessStateRow]:
        """Return the states that exist."""
        ...


class StatesPage(NamedTuple):
    """The states of some keys, over all executions, in the order of the keys."""

    states: Sequence[BusinessStateRow]
    next: list[Json] | None
    """The last key, if there are more."""


class Places(NamedTuple):
    """How far two versions of a projection were folded."""

    executions: int
    """Executions that the serving version has."""
    position: int
    """The last position in the log that the serving version has."""
    behind: int
    """Executions of which the other version has fewer events."""
    apart: int
    """Executions of which both have not the same events."""
    first_apart: int | None
    """One of these executions."""


class BusinessReader(VersionReader, Protocol):
    """Reads the states of all executions of a scope.

    All methods raise Unavailable when the store cannot be reached.
    """

    async def projections(self, scope: Scope) -> Sequence[ListedProjection]:
        """Return the projections, by name and version."""
        ...

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
        """Return the states of up to `limit` keys, by key, version and execution.

        `wanted` are texts of parts of the key.
        """
        ...

    async def places(self, scope: Scope, projection: str, served: int, other: int) -> Places:
        """Return how far two versions were folded."""
        ...

    async def progress_page(
        self, scope: Scope, projection: str, version: int, *, after_id: int, limit: int
    ) -> Sequence[BusinessProgressRow]:
        """Return how far a version was folded, by execution."""
        ...

    async def states_of(
        self, execution_id: int, projection: str, version: int
    ) -> Sequence[BusinessStateRow]:
        """Return all states of a version of one execution."""
        ...


class ReadableBusiness(BusinessReader, Protocol):
    """Stored projections, also as of one moment."""

    def snapshot(self) -> AbstractAsyncContextManager[BusinessReader]:
        """Return a reader that sees the tables as they are when it first reads, and as long."""
        ...


class ListedProjection(NamedTuple):
    """A projection that executions of a scope have."""

    name: str
    version: int
    declaration: Mapping[str, Json]
    digest: str
    executions: int
    problems: int
    last_position: int
    status: Status | None = None
    """Of a projection with several versions: what this one is for."""
    store: str = "postgres"
    """The store that has it, by its name in the settings; `postgres`: the database of the log."""
