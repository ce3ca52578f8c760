"""Fields of a task's configuration, and outcomes of failed calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import SupportsFloat, SupportsInt

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome

_TRUE, _FALSE = frozenset(("true", "yes", "on", "1")), frozenset(("false", "no", "off", "0"))


def failed(
    kind: str, message: str, *, data: Json = None, detail: Mapping[str, Json] | None = None
) -> Outcome:
    """Return the outcome of a call that failed."""
    error: dict[str, Json] = {"kind": kind, "message": message}
    return Outcome(status="error", data=data, error=error, detail=detail or {})


def text(config: Config, *names: str) -> str:
    """Return the first of these fields that is present, which must be text.

    Raises:
        BadConfig: none is present, or it is not text.
    """
    for name in names:
        value = config.get(name)
        if value is not None:
            if isinstance(value, str) and value:
                return value
            raise BadConfig(f"{name!r} must be text, not {_short(value)}")
    raise BadConfig(f"{names[0]!r} is missing")


def mapping(config: Config, name: str) -> Config:
    """Return a field that is a mapping, empty if missing.

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
        BadConfig: `timeout` is not a positive number.
    """
    value = config.get("timeout", default)
    limit = None if value is None else _number(value)
    if limit is not None and not limit > 0:
        raise BadConfig(f"'timeout' must be a number of seconds, not {config['timeout']!r}")
    limits = [one for one in (limit, call.timeout_s) if one is not None]
    return min(limits) if limits else None


def flag(config: Config, *names: str, default: bool = True) -> bool:
    """Return the first of these fields that is present, which must be true or false.

    Raises:
        BadConfig: it is something else.
    """
    for name in names:
        value = config.get(name)
        if value is not None:
            word = str(value).strip().lower()
            if word in _TRUE or word in _FALSE:
                return word in _TRUE
            raise BadConfig(f"{name!r} must be true or false, not {_short(value)}")
    return default


def whole(config: Config, name: str) -> int | None:
    """Return a field that is a whole number; None if missing.

    Raises:
        BadConfig: it is something else.
    """
    value = config.get(name)
    if value is None:
        return None
    try:
        if isinstance(value, (int, str, SupportsInt)):
            return int(value)
    except ValueError:
        pass
    raise BadConfig(f"{name!r} must be a whole number, not {value!r}")


def mappings(config: Config, name: str) -> list[Config] | None:
    """Return a field that is a list of mappings; None when it is something else."""
    items = config.get(name)
    if not isinstance(items, list):
        return None
    found: list[Config] = [one for one in items if isinstance(one, Mapping)]
    return found if len(found) == len(items) else None


def request_name(config: Config) -> str:
    """Return method and URL for a message, without the query, which may hold a secret."""
    url = str(config.get("url") or config.get("endpoint") or "").split("?", 1)[0]
    return f"{str(config.get('method') or 'GET').upper()} {url.rsplit('@', 1)[-1]}"


def _number(value: Json) -> float:
    """Return a number, or 0 if it is not one."""
    try:
        return float(value) if isinstance(value, (int, float, str, SupportsFloat)) else 0.0
    except ValueError:
        return 0.0


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"
