"""Two executions of one playbook: the first step that differs, and in what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streams.errors import Refused
from streams.events.model import Json, PayloadRef, Root
from streams.events.types import PlaybookInitialized, typed
from streams.payload.port import PayloadStore, Scope
from streams.replay.errors import NoSuchExecution
from streams.replay.port import StoredLog
from streams.replay.semantic import SemanticFold, StepComparison, StepDigest, compared
from streams.replay.verified import VerifiedLog
from streams.results.reading import read_value

LARGEST_PAYLOAD_BYTES = 256 * 1024 * 1024


class OtherPlaybook(Refused):
    """The executions are of different playbooks."""


class PayloadRows:
    """Reads rows from the payload store."""

    def __init__(self, payloads: PayloadStore) -> None:
        self._payloads = payloads

    async def read(self, ref: PayloadRef) -> Sequence[Json]:
        """Return the rows; a value that is not a list is one row."""
        found = await read_value(self._payloads, ref, LARGEST_PAYLOAD_BYTES)
        return found if isinstance(found, list) else [found]


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Two executions, step by step."""

    path: str
    executions: tuple[int, int]
    steps: tuple[StepComparison, ...]

    @property
    def first_difference(self) -> StepComparison | None:
        """The first step that differs; None: they are equal."""
        return next((one for one in self.steps if one.differs_in), None)


class RunComparison:
    """Compares executions by what their steps did."""

    def __init__(self, log: StoredLog, events: VerifiedLog, rows: PayloadRows) -> None:
        self._log, self._events, self._rows = log, events, rows

    async def between(self, a: int, b: int, scope: Scope) -> RunDiff:
        """Compare two executions of one playbook.

        Raises:
            NoSuchExecution: one of them is not in this scope.
            OtherPlaybook: they are of different playbooks.
            TamperedLog: an event is not what was appended.
            Unavailable: log or payload store cannot be read.
        """
        path, steps = await self._read(a, scope)
        other_path, other_steps = await self._read(b, scope)
        if path != other_path:
            raise OtherPlaybook(
                f"execution {a} is of {path}, {b} of {other_path}; compare two of one playbook"
            )
        return RunDiff(path, (a, b), compared(steps, other_steps))

    async def _read(self, execution_id: int, scope: Scope) -> tuple[str, tuple[StepDigest, ...]]:
        root = Root("execution", execution_id)
        head = await self._log.head(root)
        if head is None or head.scope != scope:
            raise NoSuchExecution(execution_id, scope.tenant_id, scope.organization_id)
        fold, path = SemanticFold(self._rows, scope), ""
        async for events in self._events.pages(root, through_seq=head.seq):
            for event in events:
                if event.seq == 1 and isinstance(known := typed(event), PlaybookInitialized):
                    path = known.path
                await fold.absorb(event)
        return path, fold.steps()
