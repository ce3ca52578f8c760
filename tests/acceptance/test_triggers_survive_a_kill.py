"""The trigger process dies in the middle of its work: every trigger starts one execution."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import orjson
import pytest
from aiokafka import AIOKafkaProducer

from streams.app import catalog_of, open_log
from streams.payload.port import Scope
from streams.settings import Settings
from streams.trigger.publish import TOPIC
from tests.support.log.databases import dsn
from tests.support.servers.shared import REPOSITORY, embedded_folder

pytestmark = pytest.mark.stack

TRIGGERS = 1000
TIMEOUT_S = 90
_ENTERED = "SELECT count(*) FROM noetl.trigger_ledger WHERE trigger_key LIKE $1"
_EXECUTIONS = "SELECT DISTINCT execution_id FROM noetl.trigger_ledger WHERE trigger_key LIKE $1"
_STARTS = "SELECT event_type FROM noetl.event WHERE root_id = ANY ($1::bigint[]) AND seq = 1"


@pytest.fixture
def data(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the embedded stack that the tests use."""
    if folder := embedded_folder(settings, tmp_path_factory.getbasetemp()):
        return folder
    pytest.skip("the servers are not an embedded stack, whose folder the process would be given")


@asynccontextmanager
async def trigger_process(data: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the role as `streams up` does, under the same name each time; kill it afterwards."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "streams", "run", "trigger", "--data", str(data),
        env={**os.environ, "NOETL_SHARD_ID": "trigger-killed"},
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(TIMEOUT_S):
            assert b"ready" in await process.stdout.readline()
        yield process
    finally:
        process.kill()
        await process.communicate()


async def publish(bootstrap: str, tag: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as sender:
        sent = [
            await sender.send(
                TOPIC,
                orjson.dumps({"path": "examples/hello", "workload": {"n": number}}),
                key=f"{tag}-{number}".encode(),
            )
            for number in range(TRIGGERS)
        ]
        await asyncio.gather(*sent)


async def until(enough: Callable[[int], bool], pool: asyncpg.Pool, keys: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not enough(await pool.fetchval(_ENTERED, keys)):  # noqa: ASYNC110 - a table has no event
            await asyncio.sleep(0.02)


async def test_a_thousand_triggers_sent_twice_around_a_kill_start_a_thousand_executions(
    settings: Settings, data: Path
) -> None:
    bootstrap, tag = settings.event_store.connection.url, uuid4().hex
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    content = (REPOSITORY / "examples" / "hello.yaml").read_text("utf-8")
    async with open_log(settings, role="test") as log:
        await catalog_of(log).register(scope, content)
    async with asyncpg.create_pool(dsn(settings, "read"), min_size=1, max_size=1) as pool:
        keys = f"{tag}-%"
        async with trigger_process(data) as process:
            sending = asyncio.create_task(publish(bootstrap, tag))
            await until(lambda count: count > 0, pool, keys)
            process.kill()
            await sending
        await publish(bootstrap, tag)
        async with trigger_process(data):
            await until(lambda count: count == 2 * TRIGGERS, pool, keys)
        executions = [row[0] for row in await pool.fetch(_EXECUTIONS, keys)]
        assert len(executions) == TRIGGERS
        starts = [row[0] for row in await pool.fetch(_STARTS, executions)]
        assert starts == ["playbook.initialized"] * TRIGGERS
