"""What operators see of the payload tiers."""

from __future__ import annotations

from pathlib import Path

import orjson

from streams.data_folder import layout_of
from streams.local.tier_stats import read_tiers, tier_lines
from streams.payload.tiers.counts import TierCounts


def test_what_each_role_told_is_shown_and_nothing_else(tmp_path: Path) -> None:
    layout, counts = layout_of(tmp_path), TierCounts("worker")
    for _ in range(2):
        counts.read("1.5", 100, own=False)
    counts.read("1.5", 100, own=True)
    counts.read("3", 100, own=False)
    counts.events.update({"exhausted": 4, "swept": 0})
    counts.fell_through["gone"] += 5
    for name in ("worker-0", "left-by-another"):
        layout.tiers(name).parent.mkdir(parents=True)
        tiers = {**counts.snapshot(), "bytes_in_use": {"1.5": 3 << 20}}
        layout.tiers(name).write_bytes(orjson.dumps(tiers))
    layout.tiers("api-0").parent.mkdir()
    layout.tiers("api-0").write_bytes(b"{")  # being written

    tiers = read_tiers(layout, ("worker-0", "api-0", "planner-0"))

    assert list(tiers) == ["worker-0"]
    title, line = tier_lines(tiers)
    assert title.startswith("tiers")
    assert "from 1.5" in title
    assert line.split(maxsplit=7) == (
        ["worker-0", "0", "3", "0", "1", "3", "0", "exhausted 4, passed over (gone) 5"]
    )


def test_where_nobody_told_anything_nothing_is_said(tmp_path: Path) -> None:
    assert not list(tier_lines(read_tiers(layout_of(tmp_path), ("worker-0",))))
