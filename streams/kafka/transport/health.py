"""Pages of a role on Faust's web server: `/health` and `/ready`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from streams.kafka.transport.app import Application


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a role's process."""

    group: str
    instance: str
    is_ready: bool
    """Whether its partitions are assigned and its tables recovered."""
    away: list[str]
    """Dependencies that do not respond; work is held."""
    partitions: int
    behind: int
    """Offsets between the committed position and the end."""
    finished: int
    """Records acknowledged since the start."""


def add_pages(app: Application, health: Callable[[], Health]) -> None:
    """Serve the state: `/health` always with 200, `/ready` with 503 while it is not ready."""

    @app.page("/health")
    async def show_health(view: Any, request: Any) -> Any:
        return view.json(asdict(health()))

    @app.page("/ready")
    async def show_readiness(view: Any, request: Any) -> Any:
        found = health()
        return view.json({"is_ready": found.is_ready}, status=200 if found.is_ready else 503)
