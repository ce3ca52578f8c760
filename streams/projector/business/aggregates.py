"""The aggregates that a playbook may declare. Pure.

Each has a state, which is JSON; states of disjoint rows are merged in any order with the same
outcome. Nulls and missing columns count nowhere. Values of the wrong kind (a text in a sum) are
left out and counted as `skipped`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from streams.events.model import Json
from streams.playbook.declarations import Function
from streams.projector.business.values import (
    Tagged,
    identity,
    number,
    number_text,
    plain,
    plain_number,
    rank,
    tagged,
    total,
)


class Located(NamedTuple):
    """A value that is not null, with the place of its row: position in the log, row, column."""

    at: tuple[int, int]
    value: object


State: TypeAlias = dict[str, Any]
"""The state of one aggregate; its fields depend on the function."""


class AggregateFunction(NamedTuple):
    """How one function folds, merges and reads its state."""

    fold: Callable[[Sequence[Located]], State]
    merge: Callable[[State, State], State]
    result: Callable[[State], Json]


def _count(values: Sequence[Located]) -> State:
    return {"count": len(values)}


def _sum(values: Sequence[Located]) -> State:
    numbers = [found for one in values if (found := number(one.value)) is not None]
    return {
        "count": len(numbers),
        "sum": number_text(total(numbers)),
        "skipped": len(values) - len(numbers),
    }


def _merge_sums(one: State, other: State) -> State:
    return {
        "count": one["count"] + other["count"],
        "sum": number_text(total([Decimal(one["sum"]), Decimal(other["sum"])])),
        "skipped": one["skipped"] + other["skipped"],
    }


def _sum_result(state: State) -> Json:
    return plain_number(state["sum"]) if state["count"] else None


def _extreme(choose: Callable[..., Tagged]) -> AggregateFunction:
    def fold(values: Sequence[Located]) -> State:
        ranked = [found for one in values if (found := tagged(one.value))[0] in ("n", "t")]
        best = choose(ranked, key=rank) if ranked else None
        return {"value": best, "skipped": len(values) - len(ranked)}

    def merge(one: State, other: State) -> State:
        found = [state["value"] for state in (one, other) if state["value"] is not None]
        best = choose(found, key=rank) if found else None
        return {"value": best, "skipped": one["skipped"] + other["skipped"]}

    return AggregateFunction(fold, merge, lambda state: plain(state["value"]))


def _last(values: Sequence[Located]) -> State:
    if not values:
        return {"value": None, "at": None}
    found = max(values, key=lambda one: one.at)
    return {"value": tagged(found.value), "at": list(found.at)}


def _merge_last(one: State, other: State) -> State:
    if one["at"] is None or other["at"] is None:
        return other if one["at"] is None else one
    return max(one, other, key=lambda state: tuple(state["at"]))


def _distinct(values: Sequence[Located]) -> State:
    return {"values": sorted({identity(one.value) for one in values})}


def _merge_distinct(one: State, other: State) -> State:
    return {"values": sorted({*one["values"], *other["values"]})}


OF: Mapping[Function, AggregateFunction] = {
    "count": AggregateFunction(
        _count,
        lambda one, other: {"count": one["count"] + other["count"]},
        lambda state: state["count"],
    ),
    "sum": AggregateFunction(_sum, _merge_sums, _sum_result),
    "min": _extreme(min),
    "max": _extreme(max),
    "last": AggregateFunction(_last, _merge_last, lambda state: plain(state["value"])),
    "distinct": AggregateFunction(_distinct, _merge_distinct, lambda state: len(state["values"])),
}
