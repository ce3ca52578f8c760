"""Next windows of rows of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streams.execution.frame import Cursor
from streams.execution.stage import Stage
from streams.ids import derive_id
from streams.payload.content import reference_from
from streams.planner.draft import Draft


def windows(draft: Draft, stage: Stage) -> Iterator[tuple[int, Cursor]]:
    """Yield the next possible frames: continuations, then new windows."""
    for parent, cursor in stage.continuations.items():
        marked = {**cursor, "continues": str(parent)}
        yield derive_id(parent, 0, "continuation"), marked
    index = stage.minted
    while (fresh := _window(draft, stage, index)) is not None:
        yield derive_id(stage.stage_id, index, "frame"), fresh
        index += 1


def _window(draft: Draft, stage: Stage, index: int) -> Cursor | None:
    """Return the cursor of the stage's window number `index`, if it exists."""
    source = stage.source
    if source["kind"] == "list":
        size, total = int(stage.policy["size"]), stage.total_rows or 0
        first = index * size
        if first >= total:
            return None
        return {"kind": "list", "from": first, "to": min(first + size, total)}
    if source["kind"] == "claim":
        return None if stage.is_exhausted else {"kind": "claim"}
    if index >= int(source["count"]):
        return None
    if source["kind"] == "keyset":
        keys = _listed(draft, source, "boundaries")
        after = keys[index - 1] if index else None
        kind = {"kind": "keyset", "type": source.get("type")}
        return {**kind, "after": after, "through": keys[index], **_first(draft, source, index)}
    ranges = _listed(draft, source, "ranges")
    partition, low, high = ranges[index]
    first = sum(end - start for _, start, end in ranges[:index])
    whole = {"kind": "offsets", "partition": partition, "from": low, "to": high}
    return {**whole, **({"first": first} if first else {})}


def _first(draft: Draft, source: dict[str, Any], index: int) -> dict[str, int]:
    """Return the number of a window's first row; stages planned by earlier releases have none."""
    if not index or not ("counts" in source or "counts_ref" in source):
        return {}
    return {"first": int(_listed(draft, source, "counts")[index - 1])}


def _listed(draft: Draft, source: dict[str, Any], name: str) -> list[Any]:
    inline = source.get(name)
    if inline is not None:
        return list(inline)
    return list(draft.moment.known.payload(reference_from(source[f"{name}_ref"])))


def has_more(stage: Stage) -> bool:
    if stage.continuations:
        return True
    source = stage.source
    if source["kind"] == "claim":
        return not stage.is_exhausted
    if source["kind"] == "list":
        return stage.minted * int(stage.policy["size"]) < (stage.total_rows or 0)
    return stage.minted < int(source["count"])
