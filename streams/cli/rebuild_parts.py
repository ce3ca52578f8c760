"""The parts of `streams rebuild`: what each would do, and doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.cli.rebuild_progress import (
    show_facts,
    show_mirror,
    show_parity,
    show_projections,
    show_tables,
)

if TYPE_CHECKING:
    from streams.settings import Settings

Part = dict[str, object]
COMPARED, FAILURES = "executions_compared", "differing"


async def _plan_kafka(settings: Settings, _: int | None) -> Part:
    from streams.mirror.rebuild import plan_rebuild

    plan = await plan_rebuild(settings)
    return {"topics": list(plan.topics), "events": plan.events_count}


async def _plan_tables(_: Settings, __: int | None) -> Part:
    from streams.roles.table_rebuild import CHANGELOGS

    return {"changelogs": list(CHANGELOGS)}


async def _plan_projections(settings: Settings, execution_id: int | None) -> Part:
    from streams.roles.projection_rebuild import rebuild_totals

    found = await rebuild_totals(settings, execution_id)
    return {"roots": found.roots, "events": found.events}


async def _plan_facts(settings: Settings, _: int | None) -> Part:
    from streams.facts.model import TOPICS
    from streams.roles.fact_topics import fact_totals

    found = await fact_totals(settings)
    return {"topics": list(TOPICS), "roots": found.roots, "events": found.events}


async def _rebuild_kafka(settings: Settings, _: int | None) -> Part:
    from streams.mirror.rebuild import rebuild as rebuild_mirror

    done = await rebuild_mirror(settings, show_mirror())
    lost = done.verdict.lost_count if done.verdict else None
    return {"events": done.events_count, "lost": lost, "seconds": round(done.seconds, 3)}


async def _rebuild_tables(settings: Settings, _: int | None) -> Part:
    from streams.roles.table_rebuild import rebuild_tables

    done = await rebuild_tables(settings, show_tables())
    return {
        "open_executions": done.progress.open_executions,
        "served_partitions": done.progress.partitions,
        "seconds": round(done.seconds, 3),
    }


async def _rebuild_projections(settings: Settings, execution_id: int | None) -> Part:
    from streams.roles.projection_rebuild import rebuild_projections

    done = await rebuild_projections(settings, show_projections(), execution_id)
    return {
        "roots": done.roots,
        "events": done.events,
        "broken": list(done.broken),
        "events_per_s": round(done.events_per_s),
        "seconds": round(done.seconds, 3),
        **await _parity(settings, execution_id),
    }


async def _parity(settings: Settings, execution_id: int | None) -> Part:
    """Compare the rebuilt rows with a replay, if the settings require it."""
    if not settings.event_store.replay.require_projection_parity:
        return {COMPARED: "not required", FAILURES: []}
    from streams.roles.rebuild_parity import rebuild_parity

    found = await rebuild_parity(settings, execution_id, show_parity())
    return {COMPARED: found.executions, FAILURES: list(found.failures)}


async def _rebuild_facts(settings: Settings, _: int | None) -> Part:
    from streams.roles.fact_topics import fact_totals, rebuild_facts

    total = (await fact_totals(settings)).events
    done = await rebuild_facts(settings, show_facts(total))
    return {
        "events": done.events,
        "written": done.written,
        "deleted": done.deleted,
        "broken": list(done.broken),
        "seconds": round(done.seconds, 3),
    }


PLANS = {
    "kafka": _plan_kafka,
    "tables": _plan_tables,
    "projections": _plan_projections,
    "facts": _plan_facts,
}
REBUILDS = {
    "kafka": _rebuild_kafka,
    "tables": _rebuild_tables,
    "projections": _rebuild_projections,
    "facts": _rebuild_facts,
}
