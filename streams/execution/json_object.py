"""The type of JSON objects inside the state of an execution."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""An object as an event carries it; pydantic, which stores plans, takes it as it is."""
