"""Tables of a running stack are created again, and nothing is lost."""

from __future__ import annotations

import aiohttp
import orjson
import pytest

from streams.data_folder import layout_of
from streams.roles.table_rebuild import rebuild_tables
from tests.support.servers.runtime import Runtime, playbook
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]


async def test_the_tables_are_rebuilt_from_the_log_while_executions_run(runtime: Runtime) -> None:
    waiting = playbook({"step": "wait", "pool": "nobody", "tool": {"kind": "noop"}})
    execution_id = await runtime.start(waiting)
    ended = await runtime.run(playbook({"step": "once", "tool": {"kind": "noop"}}))
    lines: list[str] = []

    rebuilt = await rebuild_tables(runtime.settings, lambda line: lines.append(str(line)))

    assert rebuilt.progress.open_executions >= 1, "the waiting execution is open"
    assert lines[:2] == ["deleting the changelogs", "creating the changelogs"]
    await until(lambda: _served(runtime, ended.execution_id), within_s=30)
    row = await _served(runtime, execution_id)
    assert row is not None
    assert row["status"] == "RUNNING"
    after = await runtime.run(playbook({"step": "once", "tool": {"kind": "noop"}}))
    assert after.status == "COMPLETED"


async def _served(runtime: Runtime, execution_id: int) -> dict[str, object] | None:
    """Return an execution's row from the projector's web server."""
    address = orjson.loads(layout_of(runtime.data).address("projector-0").read_bytes())
    url = f"{address['url']}/executions/{execution_id}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        found: dict[str, object] | None = await answer.json() if answer.status == 200 else None
        return found
