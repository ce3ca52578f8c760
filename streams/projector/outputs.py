"""Outputs of committed frames, read from their payloads: rows, bytes, nulls, schema."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import pyarrow as pa

from streams.errors import PoisonRecord
from streams.events.model import Event, PayloadRef
from streams.events.types import FrameCommitted, FrameHeartbeat, typed
from streams.payload.port import ARROW
from streams.projector.port import OutputTables
from streams.projector.rows import OutputRow

AT_ONCE = 8
LARGEST_BYTES = 256 * 1024 * 1024
"""Larger outputs are not read, only referenced: they could take all memory."""

_WITH_OUTPUT = (FrameHeartbeat.TYPE, FrameCommitted.TYPE)


OnOutput: TypeAlias = Callable[[Event, pa.Table | PoisonRecord], Awaitable[None]]
"""Called with the rows behind an event's payload, or why they cannot be read."""


class OutputTooLarge(PoisonRecord):
    """An output is too large to read for its statistics."""


class Outputs:
    """Reads the output of every frame once, from the nearest copy."""

    def __init__(self, tables: OutputTables) -> None:
        self._tables, self._places = tables, asyncio.Semaphore(AT_ONCE)

    async def rows(
        self, events: Iterable[Event], on_output: OnOutput | None = None
    ) -> list[OutputRow]:
        """Return one row for each commit or checkpoint of a frame that has rows.

        A lost or damaged output gets a row with the reason, so that it blocks nothing. What is
        read is given to `on_output`.

        Raises:
            Unavailable: the store is down; retrying is safe.
        """
        outputs = [
            (event, frame, ref)
            for event in events
            if event.type in _WITH_OUTPUT
            and isinstance(frame := typed(event), FrameCommitted | FrameHeartbeat)
            and (ref := frame.payload_ref) is not None
            and ref.media_type == ARROW
        ]
        return list(await asyncio.gather(*(self._row(*output, on_output) for output in outputs)))

    async def _row(
        self,
        event: Event,
        frame: FrameCommitted | FrameHeartbeat,
        ref: PayloadRef,
        on_output: OnOutput | None,
    ) -> OutputRow:
        columns = nulls = problem = None
        rows, size = ref.row_count or 0, ref.byte_length
        try:
            if size > LARGEST_BYTES:
                raise OutputTooLarge(f"{ref.uri}: {size} bytes are too large to read")
            async with self._places:
                table = await self._tables.table(ref)
                if on_output is not None:
                    await on_output(event, table)
        except PoisonRecord as error:
            problem = str(error)
            if on_output is not None:
                await on_output(event, error)
        else:
            rows, columns = table.num_rows, table.num_columns
            nulls = sum(column.null_count for column in table.columns)
        return OutputRow(
            frame_id=frame.frame_id,
            stage_id=frame.stage_id,
            execution_id=event.root.id,
            tenant_id=event.tenant_id,
            organization_id=event.organization_id,
            step_name=event.node_name,
            schema_digest=ref.schema_digest,
            row_count=rows,
            byte_count=size,
            column_count=columns,
            null_count=nulls,
            problem=problem,
            last_seq=event.seq,
        )
