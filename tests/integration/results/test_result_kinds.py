"""Whatever store a result is in, another worker and the API read it."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from streams.api.server import make_app
from streams.app import open_copies, open_payloads, open_pool
from streams.payload.port import PayloadStore, Scope
from streams.playbook.result_policy import STORES
from streams.results.copies.port import Copies
from streams.results.reference import ResultRef
from streams.settings import Settings
from streams.settings.payload_store import PayloadConnection, ResultStores
from streams.settings.payload_store import PayloadStoreSettings as Chosen
from streams.worker.attempt.input import Documents
from tests.support.api.server import open_stand
from tests.support.log.databases import dsn
from tests.support.projector.executions import Story
from tests.support.results.writer import value_of

pytestmark = pytest.mark.stack
NEAR = ("memory", "duckdb")
"""Stores whose copies are one process's own."""
FAR = ("kv", "db", "disk", "pvc")
"""Stores whose copies others have, too."""
_CHILD = (
    "import base64, pickle, sys; from tests.support.results.writer import write; "
    "write(*pickle.loads(base64.b64decode(sys.stdin.read())))"
)


@dataclass(frozen=True)
class Written:
    """What another process kept, and our own way to it."""

    refs: dict[str, Any]
    payloads: PayloadStore
    copies: Copies
    client: TestClient[Any, Any]


@pytest.fixture(scope="module")
async def written(
    database: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Written]:
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "pvc").mkdir()
    chosen = Chosen(
        backend="local",
        connection=PayloadConnection(path=str(folder / "payloads")),
        results=ResultStores(disk_path=str(folder / "disk"), pvc_path=str(folder / "pvc")),
    )
    settings = database.model_copy(update={"payload_store": chosen})
    async with AsyncExitStack() as stack:
        stand = await stack.enter_async_context(open_stand(settings))
        story = Story(stand.log.ids.take(100)[0])
        await stand.log.store.append([story.began()])
        given = pickle.dumps((settings, folder / "writer", story.root.id, list(STORES)))
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", _CHILD],
            input=b64encode(given),
            stdout=subprocess.PIPE,
            check=True,
            timeout=120,
        )
        payloads = await stack.enter_async_context(open_payloads(settings))
        pool = await stack.enter_async_context(open_pool(dsn(settings, "append")))
        copies = await stack.enter_async_context(open_copies(settings, pool, folder / "reader"))
        app = make_app(replace(stand.runtime, payloads=payloads))
        client = await stack.enter_async_context(TestClient(TestServer(app)))
        yield Written(orjson.loads(done.stdout), payloads, copies, client)


def test_a_small_result_stays_in_its_event(written: Written) -> None:
    assert {kind for kind, ref in written.refs.items() if ref is None} == {"eventlog"}


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "eventlog"])
async def test_another_worker_and_the_api_read_it(written: Written, kind: str) -> None:
    ref = written.refs[kind]
    assert ref["store"] == kind
    payload = ResultRef(ref).payload(Scope("acme", "care"))
    if kind == "kv":
        async with asyncio.timeout(60):
            while await written.copies.tiers[kind].get(payload) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert await Documents(written.payloads, copies=written.copies).read(payload, kind) == (
        value_of(kind)
    )
    counted = written.copies.snapshot()
    assert (counted["hits"].get(kind, 0), counted["misses"].get(kind, 0)) == (
        (1, 0) if kind in FAR else (0, 1) if kind in NEAR else (0, 0)
    )
    async with written.client.get(f"/api/result/resolve?ref={quote(ref['ref'], safe='')}") as got:
        assert (got.status, await got.json()) == (200, value_of(kind))
