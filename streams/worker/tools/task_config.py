"""Outcomes of work that failed, and reading a task's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome


def failed(
    kind: str, message: str, *, data: Json = None, detail: Mapping[str, Json] | None = None
) -> Outcome:
    """Return the outcome of a call that failed."""
    error: dict[str, Json] = {"kind": kind, "message": message}
    return Outcome(status="error", data=data, error=error, detail=detail or {})


def text(config: Config, *names: str) -> str:
    """Return the first of these fields that is there, which must be text.

    Raises:
        BadConfig: none is there, or it is no text.
    """
    for name in names:
        value = config.get(name)
        if value is not None:
            if isinstance(value, str) and value:
                return value
            raise BadConfig(f"{name!r} must be text, not {_short(value)}")
    raise BadConfig(f"{names[0]!r} is missing")


def mapping(config: Config, name: str) -> Mapping[str, Any]:
    """Return a field that is a mapping, empty when it is not there.

    Raises:
        BadConfig: it is something else.
    """
    value = config.get(name)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise BadConfig(f"{name!r} must be a mapping, not {_short(value)}")


def seconds(config: Config, call: Call, default: float | None) -> float | None:
    """Return how long the call may take: the task's `timeout`, within the caller's limit.

    Raises:
        BadConfig: `timeout` is no positive number.
    """
    value = config.get("timeout", default)
    if value is not None:
        try:
            value = float(value)
        except (TypeError, ValueError):
            value = 0.0
        if not value > 0:
            raise BadConfig(f"'timeout' must be a number of seconds, not {config['timeout']!r}")
    limits = [limit for limit in (value, call.timeout_s) if limit is not None]
    return min(limits) if limits else None


def request_name(config: Config) -> str:
    """Name the request in a message, without its query, which may hold a secret."""
    url = str(config.get("url") or config.get("endpoint") or "").split("?", 1)[0]
    return f"{str(config.get('method') or 'GET').upper()} {url.rsplit('@', 1)[-1]}"


def _short(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:77]}…"
