"""JSON of business projections and their rows."""

from __future__ import annotations

from streams.projector.business.port import ListedProjection
from streams.projector.business.reading import MergedPage


def listed_json(one: ListedProjection) -> dict[str, object]:
    """Return a projection, without rows."""
    return {
        "name": one.name,
        "version": one.version,
        "declaration": one.declaration,
        "digest": one.digest,
        "executions": one.executions,
        "executions_with_problems": one.problems,
        "last_position": one.last_position,
        "status": one.status,
        "store": one.store,
    }


def page_json(page: MergedPage) -> dict[str, object]:
    """Return rows, and the place of the next page."""
    return {
        "projection": listed_json(page.projection),
        "rows": [
            {
                "key": row.key,
                "values": row.values,
                "skipped": row.skipped,
                "row_count": row.row_count,
                "executions": row.executions,
                "first_position": row.first_position,
                "last_position": row.last_position,
            }
            for row in page.rows
        ],
        "next": page.next,
    }
