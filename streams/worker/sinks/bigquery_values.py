"""BigQuery values: query parameters and rows of load jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import TypeAlias

from google.cloud import bigquery

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.sinks.tables import text_of_json

_KINDS = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL"}
"""Type of a column in the API -> type of a parameter."""
_TEXTS = ("STRING", "NUMERIC", "BIGNUMERIC")
"""Types whose values are sent as text, including numbers."""
Parameter: TypeAlias = bigquery.ScalarQueryParameter | bigquery.ArrayQueryParameter
"""A named parameter of a query."""


def scalar_parameter(name: str, value: Json) -> Parameter:
    """Bind a value, with its type inferred."""
    kinds = ((bool, "BOOL"), (int, "INT64"), (float, "FLOAT64"), (datetime, "TIMESTAMP"))
    kind = next((known for cls, known in (*kinds, (date, "DATE")) if isinstance(value, cls)), "")
    return bigquery.ScalarQueryParameter(name, kind or "STRING", text_of_json(value))


def field_of(schema: Sequence[bigquery.SchemaField], table: str, name: str) -> bigquery.SchemaField:
    """Return the table's column of this name, case-insensitively."""
    known = {field.name.lower(): field for field in schema}
    if (found := known.get(name.lower())) is None:
        there = ", ".join(field.name for field in schema)
        raise BadConfig(f"{table} has no column {name!r}; it has {there}")
    if found.field_type in ("RECORD", "STRUCT"):
        raise BadConfig(
            f"column {name!r} is a RECORD: use mode append or overwrite, or a statement"
        )
    return found


def column_parameter(name: str, field: bigquery.SchemaField, value: Json) -> Parameter:
    """Bind a value as its column's type: that of a NULL or a NUMERIC cannot be inferred."""
    kind = _KINDS.get(field.field_type, field.field_type)
    if field.mode == "REPEATED":
        if not isinstance(value, (list, type(None))):
            raise BadConfig(f"column {field.name!r} is REPEATED and takes a list")
        return bigquery.ArrayQueryParameter(name, kind, [_bound(kind, one) for one in value or ()])
    bound = _bound(kind, value)
    return bigquery.ScalarQueryParameter(name, kind, bound)  # type: ignore[arg-type]  # JSON too


def _bound(kind: str, value: Json) -> Json:
    if kind in _TEXTS and isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return value if kind == "JSON" else text_of_json(value)


def loadable(value: Json, field: bigquery.SchemaField | None) -> Json:
    """Return a value for a load job; objects for a text column become JSON text."""
    if field is not None and field.field_type == "STRING":
        if field.mode == "REPEATED" and isinstance(value, list):
            return [_bound("STRING", one) for one in value]
        return _bound("STRING", value)
    is_json = value is None or isinstance(value, (str, int, float, bool, dict, list))
    return value if is_json else str(value)
