"""Projections in DuckDB and RocksDB: two projectors share the files, one is killed, files are lost.

Their rows equal the replay of the log, and `streams projections` and the API read them.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import duckdb
import orjson
import pytest
from click.testing import CliRunner

from streams.app import open_business_parity
from streams.cli import cli
from streams.local.settings import stack_settings
from streams.local.state import find_stack
from streams.payload.port import Scope
from streams.replay.checks import Check, Status
from streams.roles.projection_rebuild import rebuild_projections
from streams.settings import Settings, load
from streams.settings.projections import FileStore
from tests.support.servers.runtime import TIMEOUT_S, Runtime, playbook
from tests.support.servers.second_role import second_role
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
NAMES = ("numbers_in_duckdb", "numbers_in_rocksdb", "numbers_in_postgres")
ROWS, EXECUTIONS = 240, 3
TOTALS = [{"rows": EXECUTIONS * 60, "total": EXECUTIONS * sum(range(n, ROWS, 4))} for n in range(4)]


def numbers() -> dict[str, Any]:
    """Return a playbook whose rows are projected into three stores."""
    step = {
        "step": "each",
        "loop": {"in": f"{{{{ range({ROWS}) | list }}}}", "iterator": "n"},
        "tool": {"kind": "noop", "data": {"n": "{{ iter.n }}", "group": "{{ iter.n % 4 }}"}},
    }
    step["loop"]["frame_policy"] = {"size": 4}  # type: ignore[index]
    declared = {"source": {"step": "each"}, "key": "group"}
    aggregates = {"rows": {"count": "*"}, "total": {"sum": "n"}}
    projections = [{"name": name, **declared, "aggregates": aggregates} for name in NAMES]
    return {**playbook(step), "projections": projections}


@pytest.fixture
def settings(
    own_runtime: Runtime, file_stores: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Return the settings of the roles, which a second projector has too."""
    for name, value in file_stores.items():
        monkeypatch.setenv(name, value)
    state = find_stack(own_runtime.data)
    assert state is not None
    return load(env=file_stores, stack=stack_settings(state)).settings


async def test_projections_in_files_equal_the_replay(
    own_runtime: Runtime, settings: Settings
) -> None:
    runtime, declared = own_runtime, numbers()
    started = [await runtime.start(declared) for _ in range(EXECUTIONS)]
    async with second_role(runtime, "projector-8"):
        await runtime.kill("projector-0")
        for execution_id in started:
            assert (await runtime.finish(execution_id)).status == "COMPLETED"
        await _equal_the_replay(settings, started)
    assert await runtime.executions.connection.fetch(
        "SELECT DISTINCT projection FROM noetl.business_state WHERE execution_id = ANY ($1)",
        started,
    ) == [("numbers_in_postgres",)]

    await _are_read(runtime)
    with duckdb.connect(_path(settings, "analytics"), read_only=True) as database:
        rows = database.execute(
            "SELECT sum((decode(state)::JSON->>'row_count')::INT) FROM projection "
            "WHERE projection_type = 'numbers_in_duckdb.v1'"
        ).fetchone()
    assert rows == (EXECUTIONS * ROWS,)

    _path(settings, "analytics").unlink()
    shutil.rmtree(_path(settings, "keyed"))
    for execution_id in started:
        await rebuild_projections(settings, execution_id=execution_id)
    await _equal_the_replay(settings, started)


async def _equal_the_replay(settings: Settings, executions: Sequence[int]) -> None:
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    found: Sequence[Check] = ()
    async with open_business_parity(settings) as parity:

        async def is_equal(execution_id: int) -> bool:
            nonlocal found
            found = await parity.compare(execution_id, scope)
            return {one.status for one in found} == {Status.PASSED}

        try:
            for execution_id in executions:
                await until(partial(is_equal, execution_id), within_s=TIMEOUT_S, every_s=0.5)
                assert {one.name for one in found} == {f"{name} v1" for name in NAMES}
        except TimeoutError:
            pytest.fail(f"execution {execution_id}: {found}")


async def _are_read(runtime: Runtime) -> None:
    for name in NAMES:
        shown = await _cli(runtime, "show", name)
        assert [row["values"] for row in shown["rows"]] == TOTALS
    address = f"{runtime.api()}/api/projections/numbers_in_rocksdb"
    async with (
        aiohttp.ClientSession() as session,
        session.get(address, params={"group": "3"}) as answer,
    ):
        found = await answer.json()
    assert [row["values"] for row in found["rows"]] == TOTALS[3:]
    listed = await _cli(runtime, "list")
    stores = {one["name"]: one["store"] for one in listed["projections"]}
    assert [stores[name] for name in NAMES] == ["analytics", "keyed", "postgres"]


async def _cli(runtime: Runtime, *words: str) -> Any:
    command = ["projections", *words, "--json", "--data", str(runtime.data)]
    done = await asyncio.to_thread(CliRunner().invoke, cli, command)
    assert done.exit_code == 0, done.output
    return orjson.loads(done.stdout)


def _path(settings: Settings, name: str) -> Path:
    target = settings.projection_stores[name].target()
    assert isinstance(target, FileStore)
    return target.path
