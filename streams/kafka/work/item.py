"""The work item: identifiers and small input, never data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from streams.errors import PoisonRecord
from streams.events.model import Json, PayloadRef

INLINE_DOCUMENT_BYTES = 8 * 1024
"""A larger document is sent as a reference to the event's payload."""


class BadWorkItem(PoisonRecord):
    """A record on a work topic that is not a work item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """One attempt at one frame or command, waiting for a worker.

    `document` is shared by all frames of a stage, or a command's own:
    `{"input": {...}, "items": [...]}` (items: rows of a list loop; `boundaries` for keyset).
    If it is too large, `document` is None and `document_ref` is its payload.
    `input` is the scope of the templates: `workload`, `ctx`, `args`, `steps`
    (earlier results by step name: the envelope, or {"status", "meta", "_ref": payload ref}).
    """

    kind: Literal["frame", "command"]
    tenant_id: str
    organization_id: str
    execution_id: int
    entity_id: int
    """frame_id or command_id"""
    attempt: int
    version: int
    """The version of the entity's stream before the claim."""
    step: str
    pool: str
    catalog_id: int
    catalog_version: int
    cause_id: int | None = field(default=None, compare=False)
    """The event that dispatched it, or a later one of its execution."""
    tool: str = ""
    """For commands: the tool's kind, `pipeline`, or `cursor.plan` (compute a cursor's frames)."""
    stage_id: int | None = None
    loop_id: int | None = None
    ordinal: int = 0
    cursor: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    rows_before: int | None = None
    """Rows of this frame that earlier checkpoints cover; the cursor starts after them."""
    shard_id: str | None = None
    document: dict[str, Json] | None = None
    document_ref: PayloadRef | None = None
    ctx: dict[str, Json] | None = None
    """Changes of `ctx` by earlier frames, if the rows of the loop are ordered."""
    ctx_ref: PayloadRef | None = None
    ctx_elsewhere: list[dict[str, Json]] | None = None
    """Those too large for an event: names, and their payload."""
    vars: dict[str, Json] | None = None
    """Values of the step, set by earlier frames, if the rows of the loop are ordered."""

    def encode(self) -> bytes:
        """Return the record's value. 64-bit ids are strings in JSON."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        for name in _IDS:
            if fields[name] is not None:
                fields[name] = str(fields[name])
        return orjson.dumps({k: v for k, v in fields.items() if v is not None})

    @classmethod
    def decode(cls, value: bytes) -> WorkItem:
        """Decode a record's value.

        Raises:
            BadWorkItem: it is not a work item.
        """
        try:
            fields = orjson.loads(value)
            for name in _IDS:
                if fields.get(name) is not None:
                    fields[name] = int(fields[name])
            for name in ("document_ref", "ctx_ref"):
                if (reference := fields.get(name)) is not None:
                    fields[name] = PayloadRef(**reference)
            return cls(**fields)
        except (orjson.JSONDecodeError, TypeError, ValueError, AttributeError) as error:
            raise BadWorkItem(f"not a work item: {error}") from error


_IDS = ("execution_id", "entity_id", "catalog_id", "cause_id", "stage_id", "loop_id")
