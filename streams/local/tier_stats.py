"""Counters of the payload tiers of a stack's roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import orjson

from streams.data_folder import Layout
from streams.payload.tiers.counts import TierSnapshot

TIERS = ("1", "1.5", "2", "3")


def read_tiers(layout: Layout, names: Iterable[str]) -> dict[str, TierSnapshot]:
    """Return the counters of those roles that have written any."""
    found: dict[str, TierSnapshot] = {}
    for name in names:
        with suppress(OSError, orjson.JSONDecodeError):
            found[name] = orjson.loads(layout.tiers(name).read_bytes())
    return found


def tier_lines(tiers: Mapping[str, TierSnapshot]) -> Iterator[str]:
    """Format the counters as lines; none if no role has any."""
    if tiers:
        yield _line("tiers", (*(f"from {tier}" for tier in TIERS), "MiB 1.5", "MiB 2"), "events")
    for name, counts in tiers.items():
        reads = dict.fromkeys(TIERS, 0)
        for one in counts["reads"]:
            reads[one["tier"]] += one["count"]
        in_use = counts["bytes_in_use"]
        memory = (in_use.get(tier, 0) >> 20 for tier in ("1.5", "2"))
        yield _line(name, (*reads.values(), *memory), _events(counts))


def _events(counts: TierSnapshot) -> str:
    parts = [f"{name} {count}" for name, count in counts["events"].items() if count]
    parts += [f"passed over ({why}) {count}" for why, count in counts["fell_through"].items()]
    return ", ".join(parts)


def _line(name: str, cells: Iterable[object], rest: str) -> str:
    return f"{name:<13}{''.join(f'{cell!s:<10}' for cell in cells)}{rest}".rstrip()
