"""Append an event to the log of the stack that is up, twice, and read it back.

Run it with:  .venv/bin/streams up --detach && .venv/bin/python examples/append.py
"""

import asyncio
from datetime import UTC, datetime

from streams.app import open_log
from streams.events.model import NewEvent, Root
from streams.local.settings import load_settings
from streams.settings import Settings


async def append_twice(settings: Settings) -> list[str]:
    """Append one event twice, as a retrying caller would; return what the log holds."""
    async with open_log(settings, role="example") as log:
        event = NewEvent(
            type="playbook.initialized",
            root=Root("execution", log.ids.next()),
            tenant_id="acme",
            organization_id="care",
            idempotency_key="my-trigger-42",
            event_time=datetime.now(UTC),
            meta={"path": "examples/hello", "version": 1},
        )
        first = await log.store.append([event])
        again = await log.store.append([event])
        assert first.events[0].event_id == again.events[0].event_id
        return [f"{stored.seq} {stored.type}" async for stored in log.store.read_root(event.root)]


if __name__ == "__main__":
    print("\n".join(asyncio.run(append_twice(load_settings(None, None).settings))))  # noqa: T201
