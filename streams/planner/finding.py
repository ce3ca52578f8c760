"""What decisions need of results: their data, and the lists of payloads that hold rows."""

from __future__ import annotations

from typing import Any

from streams.errors import PoisonRecord, Refused
from streams.events.model import PayloadRef
from streams.execution.plan import Plan
from streams.payload.port import Scope
from streams.planner.limits import LARGEST_EXPRESSION_PAYLOAD_BYTES
from streams.planner.needs import Unreadable
from streams.planner.port import Ports
from streams.results.manifest import EVENTS, parts_of
from streams.results.reading import (
    MANIFEST,
    TooLargeToRead,
    encode_manifest,
    read_value,
)


async def result_of(ports: Ports, ref: PayloadRef) -> Any:
    """Return the data of a result, or why an expression cannot have it.

    Raises:
        Unavailable: the payload store is down.
    """
    try:
        return await read_value(ports.payloads, ref, LARGEST_EXPRESSION_PAYLOAD_BYTES)
    except TooLargeToRead as error:
        why = f"has {error.found} bytes, too many to be read between steps"
        hint = "select the fields you need, or name the result in the task that needs it"
        return Unreadable(f"{why}; {hint}")
    except (PoisonRecord, Refused) as error:
        return Unreadable(f"cannot be read: {error}")


async def manifest_of(ports: Ports, plan: Plan, stage_id: int) -> bytes:
    """Say which payloads hold the rows of a stage, as the log has it.

    Raises:
        Unavailable: the log or the payload store is down.
    """
    events = ports.store.read_root(plan.root)
    parts = parts_of([one async for one in events if one.type in EVENTS], stage_id)
    data = encode_manifest(parts)
    # Stored now: the same decision may read the rows.
    scope = Scope(plan.tenant_id, plan.organization_id)
    await ports.payloads.put(scope, data, media_type=MANIFEST)
    return data
