"""A role tells its counters, and holds nothing up for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from streams.data_folder import TIERS_FILE
from streams.roles.tier_stats import writing_tier_stats


class Slow:
    def snapshot(self) -> dict[str, Any]:
        time.sleep(0.3)
        return {"reads": 1}


async def test_counters_that_take_their_time_stop_nobody(tmp_path: Path) -> None:
    async with writing_tier_stats(Slow(), tmp_path):
        longest = 0.0
        for _ in range(20):
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - began)
    assert longest < 0.25
    assert (tmp_path / TIERS_FILE).read_bytes() == b'{"reads":1}'
