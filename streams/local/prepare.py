"""What makes running servers a stack: migrations, topics, the connector, a round trip."""

from __future__ import annotations

from collections.abc import Callable

from streams.local.state import StackState


async def prepare(state: StackState, report: Callable[[str], None]) -> None:
    """Make the parts usable and prove it; `report` gets a line per step."""
