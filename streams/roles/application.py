"""Faust applications of the roles."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import orjson
from aiokafka.errors import KafkaError

from streams.data_folder import layout_of, write_private
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.agent import FaustProcess
from streams.kafka.topic_creation import COMPACTED, create_like
from streams.kafka.transport.app import Application, Membership, application
from streams.metrics.exposition import RoleMetrics
from streams.roles.start import role_folder
from streams.settings import Settings

_log = logging.getLogger(__name__)
WATCH_S = 10.0
"""Pause between two looks at the changelogs."""


def role_application(
    settings: Settings,
    data: Path,
    *,
    group: str,
    topics: Iterable[str],
    max_records: int = 500,
    tables: Mapping[str, str] | None = None,
) -> Application:
    """Return the application of a role's process: a static member of `group`."""
    return application(
        Membership(
            bootstrap=settings.event_store.connection.url,
            group=group,
            instance=settings.runtime.shard_id,
            topics=tuple(topics),
            folder=role_folder(settings, data),
            max_records=max_records,
            tables=tables or {},
            standbys=settings.runtime.table_standbys,
            web_host=settings.runtime.web_host,
            web_port=settings.runtime.web_port,
        )
    )


class AddressedProcess(FaustProcess):
    """A role's process; `roles/<name>.json` in the data folder has its web address."""

    def __init__(self, app: Application, folder: Path, address: Path) -> None:
        super().__init__(app, folder)
        self._address = address

    async def _open(self) -> None:
        await super()._open()
        if (url := self.app.web_url) is not None:
            write_private(self._address, orjson.dumps({"url": url, "pid": os.getpid()}))

    async def _close(self, *, has_failed: bool) -> None:
        self._address.unlink(missing_ok=True)
        await super()._close(has_failed=has_failed)


def open_process(
    app: Application, settings: Settings, data: Path, metrics: RoleMetrics | None = None
) -> FaustProcess:
    """Return the process in which a role runs; it serves the metrics."""
    address = layout_of(data).address(settings.runtime.shard_id)
    process = AddressedProcess(app, role_folder(settings, data), address)
    if metrics is not None:
        process.expose(metrics)
    process.add_work(partial(watch_topics, app))
    if app.membership.tables:
        process.add_work(partial(watch_changelogs, app, limit_s=settings.runtime.call_limit_s))
    return process


async def watch_topics(app: Application, *, every_s: float = WATCH_S) -> None:
    """Look for topics that were created again, until cancelled; they are read from the beginning.

    The assignor leaves out a topic that does not exist when the group is balanced, and metadata
    is refreshed every 5 minutes only. The committed offsets may be those of the former topic. A
    member that starts afterwards gets its former assignment: none, so it asks once for another.
    """
    known: Mapping[str, str | None] = {}
    has_asked = False
    while True:
        try:
            ids = await app.topic_ids.topic_ids(app.membership.topics)
            changed = {topic for topic, one in ids.items() if known.get(topic, one) != one}
            new = {topic for topic in changed if ids[topic] is not None}
            is_idle = app.consumer.has_no_partitions and not has_asked
            if new or is_idle:
                has_asked = has_asked or is_idle
                why = f"{', '.join(sorted(new))}: created again" if new else "no partitions"
                _log.warning("%s; joining the group again", why)
                await app.consumer.read_again(new)
            known = ids
        except (FeedUnavailable, KafkaError, TimeoutError) as error:
            _log.debug("%r", error)
        await asyncio.sleep(every_s)


async def watch_changelogs(app: Application, *, limit_s: float, every_s: float = WATCH_S) -> None:
    """Look for changelogs that were deleted or created again, until cancelled.

    A deleted one is created. The member joins again and recreates the files of its tables.
    """
    while True:
        await asyncio.sleep(every_s)
        try:
            ids = await app.topic_ids.topic_ids(app.membership.changelogs)
            missing = [topic for topic, found in ids.items() if found is None]
            if missing:
                await create_changelogs(app, limit_s=limit_s)
        except FeedUnavailable as error:
            _log.debug("%s", error)
            continue
        tables = app.state_tables
        if tables.can_write and not all(
            found is not None and tables.has_files_of(topic, found) for topic, found in ids.items()
        ):
            tables.read_again()


async def create_changelogs(app: Application, *, limit_s: float) -> None:
    """Create the changelogs of an application's tables that do not exist: lost ones, usually.

    Raises:
        FeedUnavailable: Kafka is down, or refuses them.
    """
    member = app.membership
    try:
        new = await create_like(
            member.bootstrap,
            member.changelogs,
            member.topics[0],
            config=COMPACTED,
            limit_s=limit_s,
        )
    except KafkaError as error:
        raise FeedUnavailable(
            f"{member.bootstrap}: cannot create {', '.join(member.changelogs)}: {error!r}; "
            "check that Kafka is up (`streams status`)"
        ) from error
    if new:
        _log.warning("created changelogs %s: their tables are read from the log", ", ".join(new))
