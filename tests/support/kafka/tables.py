"""Tables of one agent on the real broker, opened and closed as its process would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient

from streams.kafka.feed.topics import TopicFeed, started
from streams.kafka.transport.app import Application, Membership, application
from streams.kafka.transport.tables import TableManager
from streams.roles.application import create_changelogs

TABLES = {"things": "things by name", "parts": "their parts"}


def opened(bootstrap: str, topic: str, folder: Path, *, instance: str = "one") -> Application:
    folder.mkdir(parents=True, exist_ok=True)
    member = Membership(
        bootstrap=bootstrap,
        group=topic,
        instance=instance,
        topics=(topic,),
        folder=folder,
        tables=TABLES,
    )
    return application(member, loop=asyncio.get_running_loop())


async def ignore(stream: object) -> None:
    """Read nothing."""
    async for _ in stream:  # type: ignore[attr-defined]
        pass


@asynccontextmanager
async def running(
    bootstrap: str, topic: str, folder: Path, *, instance: str = "one"
) -> AsyncIterator[TableManager]:
    """Run an application with two tables until the body ends."""
    app = opened(bootstrap, topic, folder, instance=instance)
    app.bind(ignore)
    await create_changelogs(app, limit_s=20)
    try:
        await started(app, TopicFeed(app), within_s=60)
        yield app.state_tables
    finally:
        await app.stop()


def contents(tables: TableManager) -> dict[str, dict[bytes, bytes]]:
    """Return all rows of the owned partitions, by table."""
    return {
        name: {key: value for one in tables.owned for key, value in tables.scan(one, name)}
        for name in TABLES
    }


async def delete_changelogs(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_topics([f"{topic}-{name}-changelog" for name in TABLES])
    finally:
        await admin.close()
