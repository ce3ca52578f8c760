"""Business projections of a real stack: what projectors stored, against a replay."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from streams.app import open_business_replay, open_pool
from streams.events.model import Json
from streams.payload.port import Scope
from streams.projector.business.core import checksum_of
from streams.projector.business.port import StateId
from streams.projector.business.postgres import PostgresBusiness
from streams.settings import Settings
from tests.support.waiting import until


async def replayed_projection(
    settings: Settings, execution_id: int, name: str
) -> list[tuple[list[Json], Mapping[str, Json]]]:
    """Return the rows of a projection of one execution, once the live ones equal the replayed."""
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_business_replay(settings) as opened:
        state = await opened.state(execution_id, scope)
    (found,) = [one for one in state.projections if one.fold.fold.name == name]
    ids = [StateId(*row.key) for row in found.fold.states.values()]  # type: ignore[arg-type]
    dsn = settings.event_store.canonical_connection.dsn("read")
    async with open_pool(dsn) as pool:
        live = PostgresBusiness(pool)

        async def is_projected() -> bool:
            progress = await live.progress([execution_id])
            return any(
                one.projection == name and one.last_seq == state.as_of.seq for one in progress
            )

        await until(is_projected)
        (progress,) = [one for one in await live.progress([execution_id]) if one.projection == name]
        assert checksum_of(progress, await live.states(ids)) == found.checksum
        count = "SELECT count(*) FROM noetl.business_state WHERE execution_id = $1"
        assert await pool.fetchval(count, execution_id) == len(ids)
    fold = found.fold.fold
    return [
        (row.key_values, fold.result(orjson.loads(row.state))) for row in found.fold.states.values()
    ]
