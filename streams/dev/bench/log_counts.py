"""Counts of an execution's events, frames and rows in the log."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

COUNT = """
WITH events AS (SELECT * FROM noetl.event WHERE root_id = $1),
     stored AS (
       SELECT DISTINCT ON (payload_ref->>'sha256') (payload_ref->>'byte_length')::bigint AS bytes
       FROM events WHERE payload_ref IS NOT NULL
     )
SELECT count(*) AS events,
       count(*) FILTER (WHERE event_type LIKE 'frame.%') AS frame_events,
       count(DISTINCT meta->>'frame_id') FILTER (WHERE event_type = 'frame.dispatched') AS frames,
       count(*) FILTER (WHERE event_type = 'frame.claimed') AS claims,
       count(*) FILTER (WHERE event_type = 'command.claimed') AS command_claims,
       count(*) FILTER (WHERE event_type = 'frame.committed') AS commits,
       coalesce(sum((meta->>'rows')::bigint)
                FILTER (WHERE event_type IN ('frame.heartbeat', 'frame.committed')), 0)::bigint
         AS cursor_rows,
       coalesce(sum((meta->>'failed_rows')::bigint)
                FILTER (WHERE event_type IN ('frame.heartbeat', 'frame.committed')), 0)::bigint
         AS failed_rows,
       coalesce(sum((result->>'retries')::bigint)
                FILTER (WHERE event_type IN ('frame.heartbeat', 'frame.committed')), 0)::bigint
         AS retries,
       (SELECT coalesce(sum(bytes), 0)::bigint FROM stored) AS tier3_bytes
FROM events"""


@dataclass(frozen=True, slots=True)
class Counts:
    """Events, frames and rows of one execution."""

    events: int
    frame_events: int
    frames: int
    claims: int
    command_claims: int
    commits: int
    cursor_rows: int
    failed_rows: int
    retries: int
    tier3_bytes: int


async def count(connection: asyncpg.Connection, execution_id: int) -> Counts:
    """Count an execution's events, frames and rows in the log."""
    found = await connection.fetchrow(COUNT, execution_id)
    assert found is not None
    return Counts(**dict(found))
