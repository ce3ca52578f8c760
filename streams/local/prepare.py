"""What makes running servers a stack: migrations, topics, the connector, a round trip."""

from __future__ import annotations

from collections.abc import Callable

from streams.local.settings import stack_settings
from streams.local.state import StackState
from streams.log.migrate import migrate
from streams.mirror.setup import set_up
from streams.mirror.watermark import Watermark
from streams.settings import load


async def prepare(state: StackState, report: Callable[[str], None]) -> None:
    """Make the parts usable and prove it; `report` gets a line per step."""
    settings = load(env={}, stack=stack_settings(state)).settings
    database = settings.event_store.canonical_connection
    done = await migrate(database.dsn("owner"))
    report(f"log: {len(done)} migration steps" if done else "log: up to date")
    await set_up(settings, report)
    async with Watermark(database.dsn("append"), settings.event_store.connection.url) as mark:
        seconds = await mark.round_trip()
    report(f"round trip: Postgres to Kafka in {seconds * 1000:.0f} ms")
