"""The example of a worker in any language does a stage over HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from urllib.parse import urlparse

import orjson
import pytest

from streams.api.server import serving
from streams.settings import Settings
from tests.support.api.server import Stand, open_stand
from tests.support.log.databases import root_events
from tests.support.projector.executions import Story
from tests.support.servers.shared import REPOSITORY

pytestmark = pytest.mark.stack


@pytest.fixture
async def stand(database: Settings) -> AsyncIterator[Stand]:
    async with open_stand(database) as opened:
        yield opened


async def test_a_worker_of_sixty_lines_does_every_row_of_a_stage_once(stand: Stand) -> None:
    story = Story(stand.log.ids.take(100)[0])
    first = [story.began(), story.entered(), story.loop_started(), story.opened()]
    await stand.log.store.append([*first, story.dispatched(0), story.dispatched(1)])
    await stand.project()

    async with serving(stand.runtime) as url:
        where = (urlparse(url).netloc, str(story.stage_id))
        script = REPOSITORY / "examples" / "worker_http.py"
        worker = await asyncio.create_subprocess_exec(sys.executable, str(script), *where)
        assert await asyncio.wait_for(worker.wait(), 30) == 0

    events = await root_events(stand.log.store, story.root.id)
    commits = [event for event in events if event.type == "frame.committed"]
    assert [event.meta["rows"] for event in commits] == [5, 5]
    outputs = [event.payload_ref for event in commits]
    rows = [
        row
        for ref in outputs
        if ref is not None
        for row in orjson.loads(await stand.runtime.payloads.get(ref))
    ]
    assert sorted(row["doubled"] for row in rows) == list(range(0, 20, 2))


def test_it_has_at_most_sixty_lines() -> None:
    text = (REPOSITORY / "examples" / "worker_http.py").read_text("utf-8")
    assert len(text.splitlines()) <= 60
