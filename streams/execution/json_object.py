"""The type of JSON objects inside the state of an execution."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object of an event; pydantic, which serializes plans, does not validate it."""
