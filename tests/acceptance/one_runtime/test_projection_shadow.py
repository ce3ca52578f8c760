"""A version of a projection is replaced while executions run and readers read: blue/green."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from click.testing import CliRunner

from streams.app import open_business_parity, open_business_queries
from streams.cli import cli
from streams.dev.bench.playbook_setup import register
from streams.payload.port import Scope
from streams.projector.business.reading import BusinessQueries
from streams.replay.checks import Status
from tests.support.servers.runtime import Runtime, playbook
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
ROWS, FRAMES = 20, 10
STEP = {
    "step": "each",
    "loop": {"in": list(range(ROWS)), "iterator": "n", "frame_policy": {"size": 2}},
    "tool": {"kind": "noop", "data": {"half": "{{ iter.n % 2 }}", "n": "{{ iter.n }}"}},
}
COLUMNS = {1: {"rows", "total"}, 2: {"rows", "total", "different"}}
BEHIND = """
SELECT count(*) = 0 FROM noetl.root_head h
LEFT JOIN noetl.business_progress p
  ON p.execution_id = h.root_id AND p.projection = $2 AND p.version = $3
WHERE h.root_id = ANY ($1) AND p.last_seq IS DISTINCT FROM h.seq"""
DISPATCHED = """
SELECT count(*) FROM noetl.event WHERE root_id = ANY ($1) AND event_type = 'frame.dispatched'"""


class Story:
    """A playbook whose executions run all the time, and what a reader saw of its projection."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.name = runtime, f"halves_{uuid4().hex[:8]}"
        self.scope = Scope(
            runtime.settings.runtime.tenant_id, runtime.settings.runtime.organization_id
        )
        self._playbook = playbook(STEP)
        self.path = self._playbook["metadata"]["path"]
        self.executions: list[int] = []
        self.seen: list[tuple[int, dict[int, Any]]] = []
        """The version and the rows of each read."""
        self._is_over = False

    def text(self, version: int) -> str:
        """Return the playbook with a version of the projection."""
        aggregates: dict[str, Any] = {"rows": {"count": "*"}, "total": {"sum": "n"}}
        if version == 2:
            aggregates["different"] = {"distinct": "n"}
        made = {
            "name": self.name,
            "version": version,
            "source": {"step": "each"},
            "key": "half",
            "aggregates": aggregates,
        }
        return yaml.safe_dump({**self._playbook, "projections": [made]})

    async def command(self, *arguments: str, exit_code: int = 0) -> Any:
        """Run `streams projections shadow`, as an operator does."""
        return await self.streams("projections", "shadow", *arguments, exit_code=exit_code)

    async def streams(self, *arguments: str, exit_code: int = 0) -> Any:
        """Run a command; return what it prints, or the error that it ends with."""
        words = [*arguments, "--data", str(self.runtime.data), "--json"]
        result = await asyncio.to_thread(CliRunner().invoke, cli, words)
        if exit_code:
            return result.exception
        assert result.exit_code == 0, (result.output, result.exception)
        return json.loads(result.stdout)

    @asynccontextmanager
    async def under_load(self) -> AsyncIterator[None]:
        """Run executions and read the projection all the time."""
        async with (
            open_business_queries(self.runtime.settings) as queries,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._run())
            tasks.create_task(self._read(queries))
            await self.reads(5)
            yield
            self._is_over = True

    async def reads(self, count: int) -> None:
        """Wait for further reads and executions."""
        reads, executions = len(self.seen) + count, len(self.executions) + 2
        await until(
            lambda: len(self.seen) >= reads and len(self.executions) >= executions,
            within_s=60,
        )

    async def _run(self) -> None:
        while not self._is_over:
            execution_id = await self.runtime.started(self.path)
            self.executions.append(execution_id)

    async def _read(self, queries: BusinessQueries) -> None:
        while not self._is_over:
            page = await queries.page(self.scope, self.name)
            rows = {int(str(row.key["half"])): row.values for row in page.rows}
            self.seen.append((page.projection.version, rows))

    def check_reads(self) -> None:
        """Fail if any read had missing or mixed rows."""
        before = dict.fromkeys((0, 1), 0)
        for version, rows in self.seen:
            assert set(rows) == {0, 1}
            for half, values in rows.items():
                assert set(values) == COLUMNS[version]
                assert values["rows"] >= before[half], "rows that were served before are missing"
                before[half] = values["rows"]

    def versions_seen(self) -> list[int]:
        """Return the versions that were served, without repetitions."""
        found = [version for version, _ in self.seen]
        return [one for one, last in zip(found, [0, *found], strict=False) if one != last]


async def test_readers_see_whole_versions_while_one_is_built_cut_over_and_rolled_back(
    runtime: Runtime, tmp_path: Path
) -> None:
    story = Story(runtime)
    first = await runtime.run(story.text(1))
    story.executions.append(first.execution_id)
    await runtime.until(BEHIND, [first.execution_id], story.name, 1)
    file = tmp_path / "second.yaml"
    file.write_text(story.text(2))
    missing = await story.command(
        "build", story.name, "--version", "3", "--playbook", str(file), exit_code=3
    )
    assert f"does not declare projection {story.name!r} version 3" in str(missing)
    async with story.under_load():
        planned = await story.command(
            "build", story.name, "--version", "2", "--playbook", str(file), "--dry-run"
        )
        assert [one["status"] for one in planned["versions"]] == ["serving", "building"]
        built = await story.command("build", story.name, "--version", "2", "--playbook", str(file))
        assert built["executions"] >= 3
        await register(runtime.settings, story.text(2))
        await story.reads(5)

        compared = await story.command("compare", story.name)
        assert (compared["equal"], compared["undeclared"]) == (2, [])
        assert compared["declared"]["lines"] == ['column different: none -> {"distinct":"n"}']
        refused = await story.command("cutover", story.name, exit_code=3)
        digest = compared["declared"]["digest"]
        assert f"--accept {digest}" in str(refused)

        done = await story.command("cutover", story.name, "--accept", digest)
        assert done["parity"]["executions"] >= compared["executions"]
        await story.reads(5)
        back = await story.command("rollback", story.name)
        assert {one["version"]: one["status"] for one in back["versions"]} == {
            1: "serving",
            2: "shadow",
        }
        await story.reads(5)

    story.check_reads()
    assert story.versions_seen() == [1, 2, 1]
    for execution_id in story.executions:
        await runtime.finish(execution_id)
    for version in (1, 2):
        await runtime.until(BEHIND, story.executions, story.name, version)
    await _check_rows(story)
    again = ("rebuild", "projections", "--execution", str(first.execution_id), "--yes")
    rebuilt = await story.streams(*again)
    assert (rebuilt["executions_compared"], rebuilt["differing"]) == (1, [])
    await _check_rows(story)
    dropped = await story.command("drop", story.name, "--version", "2")
    assert dropped["dropped"] == 2
    (state,) = (await story.command("status", story.name))["projections"]
    assert [one["status"] for one in state["versions"]] == ["serving", "dropped"]


async def _check_rows(story: Story) -> None:
    """Every row counts once in each version, every frame ran once, and a replay agrees."""
    runtime, count = story.runtime, len(story.executions)
    async with open_business_queries(runtime.settings) as queries:
        for version in (1, 2):
            page = await queries.page(story.scope, story.name, version=version)
            assert [row.values["rows"] for row in page.rows] == [count * ROWS // 2] * 2
    connection = runtime.executions.connection
    assert await connection.fetchval(DISPATCHED, story.executions) == count * FRAMES
    async with open_business_parity(runtime.settings) as parity:
        checks = await parity.compare(story.executions[-1], story.scope)
    names = [f"{story.name} v1", f"{story.name} v2"]
    assert sorted((one.name, one.status) for one in checks) == [
        (one, Status.PASSED) for one in names
    ]
