"""Counts of reads by tier, of rows that another process wrote."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import orjson

from streams.data_folder import TIERS_FILE, layout_of

EVERY_S, TIMEOUT_S = 0.2, 30.0


def reads_of_others(folder: Path) -> Counter[str]:
    """Return the reads of all roles by tier, except tier 1, whose rows are a process's own."""
    found: Counter[str] = Counter()
    for file in layout_of(folder).roles.glob(f"*/{TIERS_FILE}"):
        for one in orjson.loads(file.read_bytes())["reads"]:
            if not one["own"] and one["tier"] != "1":
                found[one["tier"]] += one["count"]
    return found


async def reads_since(before: Counter[str], folder: Path, expected: int) -> Counter[str]:
    """Return the reads since, once there are as many as expected or no more arrive."""
    for _ in range(int(TIMEOUT_S / EVERY_S)):
        found = reads_of_others(folder) - before
        if found.total() >= expected:
            break
        await asyncio.sleep(EVERY_S)
    return found


def hit_ratio(reads: Counter[str]) -> float:
    """Return the share of them that shared memory served."""
    return round(reads["1.5"] / max(1, reads.total()), 3)
