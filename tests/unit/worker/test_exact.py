from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.worker.tools.exact_json import loads

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def as_told(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_told(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_told(one) for one in value]
    is_wide = type(value) is int and not -(2**63) <= value < 2**64
    return str(value) if is_wide else value


def has_infinity(value: Any) -> bool:
    return "Infinity" in json.dumps(value) and any(
        isinstance(one, float) and math.isinf(one) for one in _leaves(value)
    )


def _leaves(value: Any) -> Any:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    else:
        yield value


@given(VALUES.filter(lambda value: not has_infinity(value)))
def test_every_number_is_as_it_was_and_wide_ones_are_text(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert loads(text) == loads(text.encode()) == as_told(value)


@pytest.mark.parametrize("text", ["", "{", "[NaN, 12345678901234567890123]", '"\\ud800"', b"\xff"])
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(text)


def test_what_is_nested_too_deep_is_refused() -> None:
    deep = b"[" * 1020 + b"1" * 30 + b"]" * 1020
    with pytest.raises(orjson.JSONDecodeError, match="deep"):
        loads(deep)
