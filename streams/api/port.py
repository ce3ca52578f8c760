"""Ports of the API: projections, and the heads of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from streams.events.model import Root
from streams.payload.port import Scope

Row: TypeAlias = Mapping[str, Any]
"""One row of a projection, by the names of its columns."""


@dataclass(frozen=True, slots=True)
class Head:
    """The last `seq` of a root in the log, and whether the root has ended."""

    scope: Scope
    seq: int
    has_ended: bool


class ProjectionReader(Protocol):
    """Reads projections, which may lag the log, and heads, which do not.

    Every method raises Unavailable when the database cannot be reached.
    """

    async def head(self, root: Root) -> Head | None:
        """Return a root's head, or None where there is no such root."""
        ...

    async def execution(self, execution_id: int) -> Row | None:
        """Return an execution's row."""
        ...

    async def executions(
        self, scope: Scope, *, status: str | None, path: str | None, before: int, limit: int
    ) -> Sequence[Row]:
        """Return executions with a lower id than `before`, the newest first."""
        ...

    async def parts(self, execution_id: int) -> Mapping[str, Sequence[Row]]:
        """Return an execution's stages, and its commands that have not ended."""
        ...

    async def stage(self, stage_id: int) -> Row | None:
        """Return a stage's row, with `catalog_id` and `version` of its execution."""
        ...

    async def frame(self, frame_id: int) -> Row | None:
        """Return a frame's row."""
        ...

    async def command(self, command_id: int) -> Row | None:
        """Return a command's row."""
        ...

    async def waiting_frames(self, stage_id: int, limit: int) -> Sequence[Row]:
        """Return frames that wait for a worker, in the order of the stage."""
        ...

    async def held_frames(self, stage_id: int, worker: str) -> int:
        """Return how many frames of a stage a worker holds."""
        ...

    async def waiting_commands(
        self, scope: Scope, pool: str, tools: Sequence[str], limit: int
    ) -> Sequence[Row]:
        """Return commands that wait for a worker, the oldest first; no tools means any."""
        ...
