"""Conversion of JSON values to an Arrow column, typed as deep as they agree.

Objects are structs, lists are lists. Integers and fractions together are float64 if each can be
recovered. Values that do not fit one type are JSON text, at their own depth only, and marked in
the field; so are objects without keys, or with so many that the keys are data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

import orjson
import pyarrow as pa

from streams.events.typed_text import TypedText, value_of
from streams.payload.arrow.times import Unfit, as_json, special_column

MISSING: object = object()
ENCODING, NULL, NUMBER = b"noetl.encoding", b"noetl.null", b"noetl.number"
Marks = dict[bytes, bytes]
DEEPEST, WIDEST, MOST_FIELDS = 8, 64, 256
"""Levels of nesting, keys of a struct, and fields of a column; beyond them is JSON text."""
_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}
_SPECIAL = frozenset({Decimal, datetime, date})
_NUMBERS = frozenset({int, float})
_EXACT = 2**53
_TEXT = pa.string()


def column_of(values: Sequence[object], depth: int = DEEPEST) -> tuple[pa.Array, Marks | None]:
    """Infer a column's type; return the column with the marks of its field.

    Raises:
        TypeError: a value is not JSON.
    """
    kinds = set(map(type, values))
    missing = object in kinds
    kinds.discard(object)
    nulls = type(None) in kinds
    kinds.discard(type(None))
    if TypedText in kinds:
        kinds, values = _original_values(kinds, values)
    if not (missing and nulls):
        plain = [None if v is MISSING else v for v in values] if missing else values
        try:
            array, marks = _typed(kinds, plain, depth)
        except (OverflowError, UnicodeEncodeError, Unfit):
            pass  # an integer beyond 64 bits, a lone surrogate, a time without a zone: as text
        else:
            return array, {**(marks or {}), NULL: b"missing"} if missing else marks
    return as_text(values, missing)


def _original_values(
    kinds: set[type], values: Sequence[object]
) -> tuple[set[type], Sequence[object]]:
    """Return database values if all are of one kind, else their texts.

    A decimal is read back with its column's scale, so all must have the same.
    """
    given = [value_of(value) for value in values if type(value) is TypedText]
    inner: set[type] = set(map(type, given))
    scales = {one.as_tuple().exponent for one in given if isinstance(one, Decimal)}
    if kinds == {TypedText} and len(inner) == 1 and inner <= _SPECIAL and len(scales) <= 1:
        return inner, [value_of(one) if type(one) is TypedText else one for one in values]
    texts = [str(one) if type(one) is TypedText else one for one in values]
    return (kinds - {TypedText}) | {str}, texts


def as_text(values: Sequence[object], missing: bool) -> tuple[pa.Array, Marks]:
    """Return values as JSON text, with the marks for it."""
    marks = {ENCODING: b"json"}
    if missing:
        marks[NULL] = b"missing"
    try:
        texts = [None if v is MISSING else _dumped(v) for v in values]
    except orjson.JSONEncodeError:
        # `wide` warns readers: most JSON parsers would read such integers as floats.
        marks[ENCODING] = b"json.wide"
        texts = [None if v is MISSING else _wide(v) for v in values]
    return pa.array(texts, _TEXT), marks


def _typed(kinds: set[type], values: Sequence[object], depth: int) -> tuple[pa.Array, Marks | None]:
    if len(kinds) > 1:
        if kinds == _NUMBERS:
            return _numbers(values), {NUMBER: b"json"}
        raise Unfit("values of several kinds")
    kind = next(iter(kinds), str)
    if kind in _TYPES:
        return pa.array(values, _TYPES[kind]), None
    if kind in _SPECIAL:
        return special_column(values), None
    if depth and kind is dict:
        return _objects(values, depth - 1), None
    if depth and kind is list:
        return _lists(values, depth - 1), None
    raise Unfit("nested too deep, or not JSON")


def _numbers(values: Sequence[object]) -> pa.Array:
    """Return integers and fractions as float64, if each can be recovered."""
    for value in values:
        if type(value) is int:
            if not -_EXACT <= value <= _EXACT:
                raise Unfit("a whole number that is not a float")
        elif isinstance(value, float) and value.is_integer():
            raise Unfit("a fraction that would come back as a whole number")
    return pa.array(values, pa.float64())


def keyed(objects: Sequence[dict[str, object]], most: int) -> dict[str, Sequence[object]]:
    """Return the values of objects by key, in the order the keys first appear.

    Empty if there are more than `most` keys, or they are not text.
    """
    names = dict.fromkeys(chain.from_iterable(objects))
    if len(names) > most or set(map(type, names)) != {str}:
        return {}
    if len(names) > 1 and sum(map(len, objects)) == len(names) * len(objects):
        # Fast path: all objects have all keys.
        return dict(zip(names, zip(*map(itemgetter(*names), objects), strict=True), strict=True))
    return {name: [one.get(name, MISSING) for one in objects] for name in names}


def _objects(values: Sequence[Any], depth: int) -> pa.Array:
    given = values if None not in values else [value for value in values if value is not None]
    if not (columns := keyed(given, WIDEST)):
        raise Unfit("objects without keys, with too many, or with keys that are not text")
    arrays, fields, count = [], [], 0
    for name, inner in columns.items():
        array, marks = column_of(inner, depth)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=marks))
        count += _field_count(array.type)
    if count > MOST_FIELDS:
        raise Unfit(f"objects of {count} fields")
    made = pa.StructArray.from_arrays(arrays, fields=fields)
    if len(given) == len(values):
        return made
    place = iter(range(len(given)))
    return made.take(pa.array([None if v is None else next(place) for v in values], pa.int32()))


def _lists(values: Sequence[Any], depth: int) -> pa.Array:
    given = values if None not in values else [value for value in values if value is not None]
    items, marks = column_of(list(chain.from_iterable(given)), depth)
    if marks is not None and ENCODING in marks:
        raise Unfit("lists of several kinds")
    kind = pa.list_(pa.field("item", items.type, metadata=marks))
    begins: list[int | None] = [*accumulate(map(len, given), initial=0)]
    if given is not values:
        # A null offset means a null list in Arrow.
        following = iter(begins)
        begins = [*(None if v is None else next(following) for v in values), begins[-1]]
    return pa.ListArray.from_arrays(pa.array(begins, pa.int32()), items, type=kind)


def _field_count(kind: pa.DataType) -> int:
    inner = kind.num_fields
    return sum(_field_count(kind.field(n).type) for n in range(inner)) if inner else 1


def _dumped(value: object) -> str:
    return orjson.dumps(value, default=as_json, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()


def _wide(value: object) -> str:
    """Serialize a value with integers of any size."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    if json.loads(text) != value:  # json converts keys to text, tuples to lists
        raise TypeError(f"not JSON: {value!r:.200}")
    return text
