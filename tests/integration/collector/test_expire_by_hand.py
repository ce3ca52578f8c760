"""Results ended by hand on a real log: gone by name, freed for the collector, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from streams.cli import cli
from streams.clock import SystemClock
from streams.collector.errors import EndedAlready, NothingToEnd, StillNeeded
from streams.collector.manual import end_execution, end_result
from streams.events.locator import BadLocator
from streams.events.model import Root
from streams.payload.content import key_of, trash_key
from streams.results.lookup import ExpiredResult, NoSuchResult, Results
from streams.results.reference import result_uri
from streams.settings import Settings
from tests.integration.collector.test_collector import (
    ACME,
    House,
    _as_config,
    completed,
    open_house,
)

pytestmark = pytest.mark.stack


@pytest.fixture
async def house(fresh_database: Settings, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(fresh_database, tmp_path) as house:
        yield house


async def test_a_result_is_ended_and_its_payload_collected(house: House) -> None:
    ref, kept = await house.put(b"by hand"), await house.put(b"kept")
    stored = house.stored(ref, scope="permanent")
    execution = await house.execution(stored, house.stored(kept, scope="permanent"))
    name = result_uri(execution, "fetch", "fetch", int(stored["meta"]["result_id"]))
    results = Results(house.log.store, SystemClock())
    await results.find(name, ACME)

    would = await end_result(house.ports, name, dry_run=True)
    assert (would.results, would.payloads) == ((stored["meta"]["result_id"],), 1)
    await results.find(name, ACME)
    ended = await end_result(house.ports, name)
    assert (ended.results, ended.payloads) == ((stored["meta"]["result_id"],), 1)
    with pytest.raises(ExpiredResult, match="manual"):
        await results.find(name, ACME)
    with pytest.raises(EndedAlready, match="manual"):
        await end_result(house.ports, name)

    assert (await house.collect()).trashed == 1
    house.age(trash_key(key_of(ref)), 2)
    assert (await house.collect()).purged == 1
    assert [await house.store.exists(one) for one in (ref, kept)] == [False, True]


async def test_all_of_an_execution_is_ended_and_what_another_names_stays(house: House) -> None:
    result, own, shared = [await house.put(text) for text in (b"result", b"own", b"shared")]
    execution = await house.execution(
        house.stored(result, scope="permanent"),
        house.stored(shared, scope="permanent"),
        completed(own),
    )
    await house.execution(completed(shared))
    would = await end_execution(house.ports, execution, dry_run=True)
    ended = await end_execution(house.ports, execution)
    assert ended == replace(would, dry_run=False)
    assert (len(ended.results), ended.payloads) == (2, 3)
    with pytest.raises(NothingToEnd):
        await end_execution(house.ports, execution)
    assert (await house.collect()).trashed == 2
    for ref in (result, own):
        house.age(trash_key(key_of(ref)), 2)
    await house.collect()
    assert [await house.store.exists(one) for one in (result, own, shared)] == [False, False, True]


async def test_a_payload_that_an_event_carries_outlives_its_result(house: House) -> None:
    ref = await house.put(b"both")
    stored = house.stored(ref, scope="permanent")
    execution = await house.execution(stored, completed(ref))
    name = result_uri(execution, "fetch", "fetch", int(stored["meta"]["result_id"]))
    assert (await end_result(house.ports, name, dry_run=True)).payloads == 0
    assert (await end_result(house.ports, name)).payloads == 0
    assert (await house.collect()).trashed == 0


async def test_what_an_execution_that_runs_may_read_is_refused(house: House) -> None:
    ref = await house.put(b"in use")
    stored = house.stored(ref)
    running = await house.execution(stored, end=False)
    name = result_uri(running, "fetch", "fetch", int(stored["meta"]["result_id"]))
    child = await house.execution(house.stored(ref), parent_execution_id=running)
    with pytest.raises(StillNeeded, match="cancel"):
        await end_result(house.ports, name)
    for execution in (running, child):
        with pytest.raises(StillNeeded):
            await end_execution(house.ports, execution)
    types = [e.type async for e in house.log.store.read_root(Root("execution", running))]
    assert "result.expired" not in types


async def test_what_is_not_there_is_refused(house: House) -> None:
    execution = await house.execution()
    for name in (
        f"noetl://execution/{execution}/step/a/task/b/7",
        "noetl://execution/1/step/a/task/b/x",
        "noetl://tenant/acme/org/care/payloads/sha256/" + "0" * 64,
    ):
        with pytest.raises(NoSuchResult):
            await end_result(house.ports, name)
    with pytest.raises(BadLocator):
        await end_result(house.ports, "noetl://execution/1/step/../task/b/7")
    for one in (execution, 1):
        with pytest.raises(NothingToEnd):
            await end_execution(house.ports, one)


async def test_the_command_ends_what_it_is_told(
    house: House, fresh_database: Settings, tmp_path: Path
) -> None:
    config = tmp_path / "streams.yaml"
    config.write_bytes(orjson.dumps(_as_config(fresh_database, house.folder)))

    async def said(*words: str) -> Any:
        arguments = ["payloads", "expire", *words, "--config", str(config), "--json"]
        return await asyncio.to_thread(CliRunner().invoke, cli, arguments)

    execution = await house.execution(house.stored(await house.put(b"x")))
    for words in ((), ("noetl://execution/1/step/a/task/b/7", "--execution", "1")):
        assert (await said(*words)).exit_code == 2
    would = orjson.loads((await said("--execution", str(execution), "--dry-run")).output)
    assert (would["dry_run"], len(would["results"]), would["payloads"]) == (True, 1, 1)
    ended = await said("--execution", str(execution))
    assert (ended.exit_code, orjson.loads(ended.output)["payloads"]) == (0, 1)
    again = await said("--execution", str(execution))
    assert isinstance(again.exception, NothingToEnd)
