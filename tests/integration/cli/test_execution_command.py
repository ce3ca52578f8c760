"""`streams execution`, as its users meet it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from streams.cli import cli
from streams.errors import StreamsError
from streams.settings import Settings
from tests.support.api.server import Stand, open_stand
from tests.support.log.databases import root_events
from tests.support.projector.executions import Story

pytestmark = pytest.mark.stack


@pytest.fixture
async def stand(database: Settings) -> AsyncIterator[Stand]:
    async with open_stand(database) as opened:
        yield opened


@pytest.fixture
def run(database: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command against this module's database, as tenant acme."""
    runtime = database.runtime.model_copy(update={"tenant_id": "acme", "organization_id": "care"})
    own = database.model_copy(update={"runtime": runtime})
    for module in ("execution", "steering"):
        monkeypatch.setattr(f"streams.cli.{module}.settings_of", lambda file, data: own)

    async def call(*arguments: str) -> Result:
        import asyncio

        # The command starts a loop of its own, so it gets a thread of its own.
        return await asyncio.to_thread(CliRunner().invoke, cli, ["execution", *arguments])

    return call


async def test_executions_are_listed_shown_told_and_cancelled(stand: Stand, run: Any) -> None:
    done, going = Story(stand.log.ids.take(100)[0]), Story(stand.log.ids.take(100)[0])
    await stand.log.store.append(done.whole())
    await stand.log.store.append([going.began("examples/other"), going.issued()])
    await stand.project()
    going_id = str(going.root.id)

    listed = orjson.loads((await run("list", "--path", "examples/other", "--json")).output)
    assert [one["execution_id"] for one in listed["executions"]] == [going_id]
    shown = await run("show", str(done.root.id))
    assert "COMPLETED" in shown.output
    assert "2 of 2 frames, 10 rows" in shown.output
    report = orjson.loads((await run("events", str(done.root.id), "--json")).output)
    assert len(report["events"]) == 19

    dry = await run("cancel", going_id, "--dry-run")
    assert "would be cancelled" in dry.output
    assert (await run("cancel", going_id, "--reason", "wrong day")).exit_code == 0
    last = (await root_events(stand.log.store, going.root.id))[-1]
    assert (last.type, last.error) == ("execution.cancelled", "wrong day")
    again = await run("cancel", going_id)
    assert isinstance(again.exception, StreamsError)
    assert again.exception.exit_code == 3


async def test_an_execution_is_suspended_with_its_reason_and_resumed(
    stand: Stand, run: Any
) -> None:
    going = Story(stand.log.ids.take(100)[0])
    await stand.log.store.append([going.began("examples/paused"), going.issued()])
    going_id = str(going.root.id)

    assert (
        "would be suspended"
        in (await run("suspend", going_id, "--reason", "x", "--dry-run")).output
    )
    made = await run("suspend", going_id, "--reason", "API is down", "--by", "ana", "--json")
    assert orjson.loads(made.output)["status"] == "SUSPENDED"
    again = await run("suspend", going_id, "--reason", "y")
    assert isinstance(again.exception, StreamsError)
    assert (again.exception.exit_code, "already suspended" in str(again.exception)) == (3, True)

    await stand.project()
    assert "API is down" in (await run("show", going_id)).output
    assert "(API is down)" in (await run("list", "--path", "examples/paused")).output
    assert (await run("list", "--status", "SUSPENDED")).output.count(going_id) == 1

    assert (await run("resume", going_id, "--by", "ana")).output == f"{going_id} is resumed\n"
    await stand.project()
    shown = orjson.loads((await run("show", going_id, "--json")).output)
    assert (shown["status"], shown["error"]) == ("RUNNING", None)
    assert isinstance((await run("resume", going_id)).exception, StreamsError)
    types = [event.type for event in await root_events(stand.log.store, going.root.id)]
    assert types[2:] == ["execution.suspended", "execution.resumed"]
    assert (await run("suspend", going_id)).exit_code == 2


async def test_an_unknown_execution_is_told_as_such(run: Any) -> None:
    answer = await run("show", "5")
    assert "there is no execution 5" in str(answer.exception)
