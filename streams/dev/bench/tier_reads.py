"""How often rows that one process wrote were read by another from shared memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import orjson

from streams.data_folder import TIERS_FILE, layout_of

EVERY_S, PATIENCE_S = 0.2, 30.0


def reads_of_others(folder: Path) -> Counter[str]:
    """Return the reads of all roles by tier: those of what others wrote, tier 1 left out."""
    found: Counter[str] = Counter()
    for file in layout_of(folder).roles.glob(f"*/{TIERS_FILE}"):
        for one in orjson.loads(file.read_bytes())["reads"]:
            if not one["own"] and one["tier"] != "1":
                found[one["tier"]] += one["count"]
    return found


async def reads_since(before: Counter[str], folder: Path, expected: int) -> Counter[str]:
    """Return what was read since, once that is as much as expected or nothing more comes."""
    for _ in range(int(PATIENCE_S / EVERY_S)):
        found = reads_of_others(folder) - before
        if found.total() >= expected:
            break
        await asyncio.sleep(EVERY_S)
    return found


def hit_ratio(reads: Counter[str]) -> float:
    """Return the share of them that shared memory served."""
    return round(reads["1.5"] / max(1, reads.total()), 3)
