"""What an execution did, step by step, without ids, times, workers and interleaving.

Two runs of one playbook with the same inputs have the same digests. Rows of loops are compared
as multisets: the sum of their digests does not depend on frames, attempts or order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from blake3 import blake3

from streams.events.canonical import canonical
from streams.events.model import Event, Json, PayloadRef
from streams.events.reading import fields_of, json_of
from streams.events.types import (
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    ExecutionCancelled,
    FrameCommitted,
    FrameHeartbeat,
    PlaybookCompleted,
    PlaybookFailed,
    StageOpened,
    StepEnter,
    StepExit,
    typed,
)
from streams.payload.port import Scope
from streams.results.envelope import Envelope

_VARIABLE = re.compile(r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{6,})\b")
"""Ids in messages of errors."""
_MODULUS = 1 << 256
EXECUTION = "(execution)"


class RowPayloads(Protocol):
    """Reads the rows in payloads."""

    async def read(self, ref: PayloadRef) -> Sequence[Json]:
        """Return the rows.

        Raises:
            PayloadMissing: the object does not exist.
            Unavailable: the store is down.
        """
        ...


class StepDigest(NamedTuple):
    """What one visit of a step did."""

    step: str
    visit: int
    input: str = ""
    """Digest of its arguments."""
    status: str = ""
    error: str = ""
    rows: int = 0
    failed_rows: int = 0
    result: str = ""
    """Digest of its result, or of its rows as a multiset."""
    ctx: str = ""
    """Digest of what it set in `ctx`."""


@dataclass(slots=True)
class _Open:
    """A visit of a step, while its events are read."""

    step: str
    visit: int
    fields: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    failed_rows: int = 0
    sum: int = 0

    def digest(self) -> StepDigest:
        """Return what it did."""
        fields = dict(self.fields)
        if self.rows or self.sum:
            fields["result"] = f"{self.sum:064x}"
        return StepDigest(
            self.step, self.visit, rows=self.rows, failed_rows=self.failed_rows, **fields
        )


class SemanticFold:
    """Reads the events of an execution, in order."""

    def __init__(self, rows: RowPayloads, owner: Scope) -> None:
        self._rows, self._owner = rows, owner
        self._visits: dict[tuple[str, int], _Open] = {}
        self._commands: dict[int, tuple[str, int]] = {}
        self._stages: dict[int, tuple[str, int]] = {}
        self._whole = _Open(EXECUTION, 1)

    def steps(self) -> tuple[StepDigest, ...]:
        """Return what each visit did, in the order of entry; the execution is the last."""
        return tuple(one.digest() for one in (*self._visits.values(), self._whole))

    async def absorb(self, event: Event) -> None:
        """Add the next event."""
        match known := typed(event):
            case StepEnter():
                visit = self._visit(known.node_name, known.activation)
                visit.fields["input"] = _digest(_spilled(known.args, known.args_elsewhere))
            case CommandIssued():
                self._commands[known.command_id] = (known.node_name, known.activation)
            case StageOpened():
                self._stages[known.stage_id] = (known.node_name, known.activation)
            case CommandCompleted() | CommandFailed():
                if (key := self._commands.get(known.command_id)) is not None:
                    result = Envelope.parse(json_of(known.result)).with_payload(known.payload_ref)
                    visit = self._visit(*key)
                    visit.fields["result"] = _result(result, self._owner)
                    visit.fields["ctx"] = _digest(_spilled(result.ctx, [*result.spilled_ctx]))
            case FrameCommitted() | FrameHeartbeat():
                await self._frame(known)
            case StepExit():
                self._left(known)
            case PlaybookCompleted() | PlaybookFailed() | ExecutionCancelled():
                self._ended(known)

    def _visit(self, step: str, number: int) -> _Open:
        return self._visits.setdefault((step, number), _Open(step, number))

    async def _frame(self, known: FrameCommitted | FrameHeartbeat) -> None:
        key = self._stages.get(known.stage_id)
        if key is None or (isinstance(known, FrameHeartbeat) and known.cursor is None):
            return
        visit = self._visit(*key)
        visit.rows += known.rows or 0
        visit.failed_rows += known.failed_rows or 0
        if known.payload_ref is not None:
            for row in await self._rows.read(known.payload_ref):
                visit.sum = (visit.sum + int(_digest([row]), 16)) % _MODULUS

    def _left(self, known: StepExit) -> None:
        visit = self._visit(known.node_name, known.activation)
        visit.fields |= {"status": known.status, "error": _plain(known.error)}
        if known.ctx or known.ctx_elsewhere:
            before = visit.fields.get("ctx", "")
            visit.fields["ctx"] = _digest([before, _spilled(known.ctx, known.ctx_elsewhere)])

    def _ended(self, known: PlaybookCompleted | PlaybookFailed | ExecutionCancelled) -> None:
        self._whole.fields |= {"status": known.status, "error": _plain(known.error)}
        if isinstance(known, PlaybookCompleted):
            result = Envelope.parse(json_of(known.result)).with_payload(known.payload_ref)
            self._whole.fields["result"] = _result(result, self._owner)


class StepComparison(NamedTuple):
    """One visit of a step in both executions; None: it was not entered."""

    a: StepDigest | None
    b: StepDigest | None

    @property
    def name(self) -> str:
        """The step, with the number of its visit from the second on."""
        one = self.a or self.b
        assert one is not None, "a comparison has at least one side"
        return one.step if one.visit == 1 else f"{one.step}#{one.visit}"

    @property
    def differs_in(self) -> tuple[str, ...]:
        """The fields that differ; `entered` if only one execution entered the step."""
        if self.a is None or self.b is None:
            return ("entered",)
        pairs = zip(StepDigest._fields, self.a, self.b, strict=True)
        return tuple(name for name, one, other in pairs if one != other)


def compared(a: Sequence[StepDigest], b: Sequence[StepDigest]) -> tuple[StepComparison, ...]:
    """Pair the visits of two executions, in the order of the first; the executions come last."""
    others = {(one.step, one.visit): one for one in b}
    own = {(one.step, one.visit) for one in a}
    pairs = [StepComparison(one, others.get((one.step, one.visit))) for one in a[:-1]]
    pairs += [StepComparison(None, one) for one in b if (one.step, one.visit) not in own]
    return (*pairs, StepComparison(a[-1], b[-1]))


def _result(envelope: Envelope, owner: Scope) -> str:
    """Digest the data and the error, and the data of tasks that other steps read."""
    parts: dict[str, Json] = {"data": _data(envelope, owner)}
    error = envelope.fields.get("error")
    parts["error"] = _plain(str(fields_of(error).get("message", error) if error else ""))
    for label, one in envelope.tasks.items():
        parts[f"task {label}"] = None if one is None else _data(one, owner)
    return _digest(parts)


def _data(envelope: Envelope, owner: Scope) -> Json:
    ref = envelope.data_payload(owner)
    return envelope.data if ref is None else {"sha256": ref.sha256}


def _spilled(
    values: Mapping[str, Json] | None, groups: Sequence[Mapping[str, object]] | None
) -> Json:
    digests: list[Json] = [*sorted(str(group["sha256"]) for group in groups or ())]
    return [dict(values or {}), digests] if values or digests else None


def _plain(text: str | None) -> str:
    return _VARIABLE.sub("#", text or "")


def _digest(value: Json) -> str:
    return "" if value is None else blake3(canonical(value)).hexdigest()
