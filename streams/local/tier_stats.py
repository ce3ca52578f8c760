"""What the roles of a stack told of their payload tiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import orjson

from streams.data_folder import Layout

TIERS = ("1", "1.5", "2", "3")


def read_tiers(layout: Layout, names: Iterable[str]) -> dict[str, Any]:
    """Return the counters of each of these roles that has told any."""
    found = {}
    for name in names:
        with suppress(OSError, orjson.JSONDecodeError):
            found[name] = orjson.loads(layout.tiers(name).read_bytes())
    return found


def tier_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Say the counters in lines; none where nobody told any."""
    if told:
        yield _line("tiers", (*(f"from {tier}" for tier in TIERS), "MiB 1.5", "MiB 2"), "events")
    for name, counts in told.items():
        reads = dict.fromkeys(TIERS, 0)
        for one in counts["reads"]:
            reads[one["tier"]] += one["count"]
        in_use = counts["bytes_in_use"]
        memory = (in_use.get(tier, 0) >> 20 for tier in ("1.5", "2"))
        yield _line(name, (*reads.values(), *memory), _events(counts))


def _events(counts: Mapping[str, Any]) -> str:
    told = [f"{name} {count}" for name, count in counts["events"].items() if count]
    told += [f"passed over ({why}) {count}" for why, count in counts["fell_through"].items()]
    return ", ".join(told)


def _line(name: str, cells: Iterable[object], rest: str) -> str:
    return f"{name:<13}{''.join(f'{cell!s:<10}' for cell in cells)}{rest}".rstrip()
