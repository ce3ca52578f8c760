"""Requests that are not sent, because their host asked to wait."""

from __future__ import annotations

from math import ceil
from urllib.parse import urlsplit

from streams.events.model import Json
from streams.worker.port import Config, Outcome
from streams.worker.tools.task_config import failed, request_name


def host_of(config: Config) -> str:
    """Return scheme, host and port of the request's URL."""
    parts = urlsplit(str(config.get("url") or config.get("endpoint")))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"


def not_sent(config: Config, pause_s: float) -> Outcome:
    """Return the failure of a request to a host that asked to wait for too long."""
    message = f"{request_name(config)}: not sent; the host asked to wait for {pause_s:.0f} s more"
    headers: dict[str, Json] = {"retry-after": str(ceil(pause_s))}
    detail: dict[str, Json] = {"http": {"status": 429, "headers": headers}}
    return failed("http.paused", message, detail=detail)
