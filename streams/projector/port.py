"""Ports of a projector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from streams.errors import Unavailable
from streams.events.model import PayloadRef, Root
from streams.projector.rows import Changes


class ProjectionsUnavailable(Unavailable):
    """The database of the projections cannot be reached or written."""

    dependency = "Postgres"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far a partition was read; the offset is a hint, good for the topic with this id."""

    projection: str
    shard_id: str
    topic: str
    topic_id: str
    partition: int
    next_offset: int
    last_position: int


class OutputTables(Protocol):
    """Reads the output of frames, from the nearest copy."""

    async def table(self, ref: PayloadRef) -> pa.Table:
        """Return the rows behind `ref`.

        Raises:
            PoisonRecord: the payload is missing or damaged.
            Unavailable: the store is down.
        """
        ...


class ProjectionWriter(Protocol):
    """Writes the rows of the read model. One projector does; anyone may read."""

    async def save(self, changes: Changes, checkpoints: Sequence[Checkpoint]) -> None:
        """Write rows and checkpoints in one transaction; newer rows are not overwritten.

        Raises:
            ProjectionsUnavailable: nothing was written; retrying is safe.
        """
        ...


class ProjectionStore(ProjectionWriter, Protocol):
    """Stores the rows of the read model, and replaces them in a rebuild."""

    async def replace(self, root: Root, through_seq: int, changes: Changes) -> None:
        """Delete a root's rows as of `through_seq` or before, and write others, all or nothing.

        Newer rows stay: another writer has seen more of the root.

        Raises:
            ProjectionsUnavailable: nothing was changed; retrying is safe.
        """
        ...

    async def replace_business(self, execution_id: int, through_seq: int, changes: Changes) -> None:
        """Do the same for an execution's business projections, which `replace` leaves alone.

        Raises:
            ProjectionsUnavailable: nothing was changed; retrying is safe.
        """
        ...

    async def clear(self) -> None:
        """Delete every row and checkpoint, before a rebuild from the log.

        Raises:
            ProjectionsUnavailable: nothing was deleted.
        """
        ...
