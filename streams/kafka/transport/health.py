"""Pages of a role on Faust's web server: `/health`, `/ready`, and rows of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streams.kafka.tables.port import RowNotHere
from streams.kafka.transport.app import Application
from streams.metrics.exposition import CONTENT_TYPE, PATH, RoleMetrics


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


def add_metrics_page(app: Application, metrics: RoleMetrics) -> None:
    """Serve the metrics of the process as `/metrics`."""

    @app.page(PATH)
    async def show_metrics(view: Any, request: Any) -> Any:
        return view.bytes(await metrics.page(), headers={"Content-Type": CONTENT_TYPE})


def serve_rows(
    app: Application, name: str, lookup: Callable[[int], Mapping[str, object] | None]
) -> None:
    """Serve rows of a table by id as `/<name>/<id>`.

    404: there is none. 421: another process has its partition.
    """

    @app.page(f"/{name}/{{row_id}}")
    async def show_row(view: Any, request: Any, row_id: str) -> Any:
        if not row_id.isdecimal():
            return view.json({"error": f"{row_id!r} is not an id"}, status=400)
        try:
            row = lookup(int(row_id))
        except RowNotHere as error:
            return view.json({"error": str(error)}, status=421)
        if row is None:
            return view.json({"error": f"{name} has no {row_id}"}, status=404)
        return view.json(row)
