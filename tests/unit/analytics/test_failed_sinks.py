"""Failed sinks are restarted, with pauses; others are left alone."""

from __future__ import annotations

from collections import defaultdict

from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.analytics.task_restart import restart_failed_sinks
from streams.clock import SettableClock
from streams.mirror.connect import ConnectClient
from streams.mirror.task_restart import FIRST_PAUSE_S, RestartSchedule

STATES = {
    "noetl-mirror": "FAILED",
    "noetl-analytics-events": "FAILED",
    "noetl-lake-events": "PAUSED",
    "theirs": "FAILED",
}


async def test_only_failed_sinks_are_restarted_and_not_at_once_again() -> None:
    restarted: list[str] = []

    async def names(_: web.Request) -> web.Response:
        return web.json_response(list(STATES))

    async def status(request: web.Request) -> web.Response:
        state = {"state": STATES[request.match_info["name"]], "trace": "a.B: lost"}
        return web.json_response({"connector": state, "tasks": []})

    async def restart(request: web.Request) -> web.Response:
        restarted.append(request.match_info["name"])
        return web.Response(status=202)

    app = web.Application()
    app.router.add_get("/connectors", names)
    app.router.add_get("/connectors/{name}/status", status)
    app.router.add_post("/connectors/{name}/restart", restart)
    clock = SettableClock()
    schedules: dict[str, RestartSchedule] = defaultdict(lambda: RestartSchedule(clock))
    async with TestServer(app) as server, ConnectClient(str(server.make_url("/"))) as connect:
        assert await restart_failed_sinks(connect, schedules) == ["noetl-analytics-events: B: lost"]
        assert await restart_failed_sinks(connect, schedules) == []
        clock.advance(FIRST_PAUSE_S)
        assert len(await restart_failed_sinks(connect, schedules)) == 1
    assert restarted == ["noetl-analytics-events", "noetl-analytics-events"]
