"""Faust applications of roles: real topics, agents and tables on our transport."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import faust
from yarl import URL

from streams.kafka.clients import SESSION_TIMEOUT_MS
from streams.kafka.feed.port import TopicPartition
from streams.kafka.topic_creation import changelog_topic
from streams.kafka.topic_ids import BrokerTopicIds
from streams.kafka.transport import driver
from streams.kafka.transport.consumer import Consumer, ConsumerOptions
from streams.kafka.transport.delivery import FAUST_LOG, Batches
from streams.kafka.transport.store import ByteTable
from streams.kafka.transport.tables import TableManager

REQUEST_TIMEOUT_S = 40.0
Partitions = frozenset[TopicPartition]
Consume = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Where a role reads, and as whom.

    `instance` must be unique to the process and stable across restarts: the broker then
    reassigns its partitions to it at once.
    """

    bootstrap: str
    group: str
    instance: str
    topics: tuple[str, ...]
    folder: Path
    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    max_records: int = 500
    """Records of one fetch."""
    web_host: str = "127.0.0.1"
    web_port: int | None = None
    """Port of the web server; 0: any, None: no web server."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Names of the agent's tables, with what they hold; their partitions are those of the first
    topic."""
    standbys: int = 1
    """Other members that also read the changelogs of a partition, for a faster takeover."""

    @property
    def changelogs(self) -> list[str]:
        """The changelog topics of its tables."""
        return [changelog_topic(self.group, table) for table in self.tables]


class Application(faust.App):
    """A Faust application that reports its rebalances and its failure."""

    logger = FAUST_LOG
    consumer_options: ConsumerOptions
    consumer: Consumer

    def __init__(self, membership: Membership, **options: Any) -> None:
        super().__init__(membership.group, **options)
        self.membership = membership
        self.consumer_options = membership.options
        self._topic_ids: BrokerTopicIds | None = None
        self.on_assigned: Callable[[Partitions], None] = _nothing
        self.on_revoked: Callable[[Partitions], None] = _nothing
        self.on_failure: Callable[[BaseException], None] = _nothing
        self._consume: Consume | None = None
        self._is_bound = asyncio.Event()
        self.standalone: Callable[[], Coroutine[object, object, None]] | None = None
        """Runs the role when Faust's own command has started the application."""

    def bind(self, consume: Consume) -> None:
        """Set what the application's agent does with its stream; before the start."""
        self._consume = consume
        self._is_bound.set()

    async def on_start(self) -> None:
        """Open the role, if nobody else does: the agent starts after this."""
        await super().on_start()
        if self._consume is None and self.standalone is not None:
            self.add_future(self.standalone())
            await self._is_bound.wait()

    @property
    def web_url(self) -> str | None:
        """The address of the web server; None if there is none."""
        web: Any = self.web
        if self.membership.web_port is None or not (found := web._runner.addresses):
            return None
        host, port = found[0][:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def consume(self, stream: Any) -> None:
        """Consume a stream as the running role does; the body of the role's agent."""
        assert self._consume is not None, "no role runs in this application"
        await self._consume(stream)

    @property
    def state_tables(self) -> TableManager:
        """The tables of its agent."""
        assert isinstance(self.tables, TableManager)
        return self.tables

    @property
    def topic_ids(self) -> BrokerTopicIds:
        """The ids of topics; one that is deleted and created again has another."""
        self._topic_ids = self._topic_ids or BrokerTopicIds(self.membership.bootstrap)
        return self._topic_ids

    def release(self) -> None:
        """Close what a start that failed leaves open."""
        if self._consumer is not None:
            self.consumer.release()

    def _crash(self, reason: BaseException) -> None:
        super()._crash(reason)
        if self._consumer is not None:
            self.consumer.readings.freeze()
        self.loop.call_soon_threadsafe(self.on_failure, reason)


def application(
    membership: Membership, *, loop: asyncio.AbstractEventLoop | None = None
) -> Application:
    """Return an application with one agent, not started; its id is the consumer group."""
    driver.register()
    app = Application(
        membership,
        broker=[URL(f"{driver.SCHEME}://{one.strip()}") for one in membership.bootstrap.split(",")],
        datadir=membership.folder / "faust",
        autodiscover=False,
        loop=loop,
        # A static member that returns with another address would end the group's coordinator.
        canonical_url=f"http://{membership.instance}",
        consumer_group_instance_id=membership.instance,
        consumer_auto_offset_reset="earliest",
        broker_client_id=f"{membership.group}.{membership.instance}",
        broker_session_timeout=SESSION_TIMEOUT_MS / 1000,
        broker_request_timeout=REQUEST_TIMEOUT_S,
        broker_max_poll_records=membership.max_records,
        producer_linger=0.0,
        # Topics are declared in `topics/` and created by `streams topics apply`.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=membership.web_port is not None,
        web_bind=membership.web_host,
        web_port=membership.web_port or _free_port(membership.web_host),
        store="rocksdb://",
        table_standby_replicas=membership.standbys,
        Table=ByteTable,
        TableManager=TableManager,
    )
    for name, what in membership.tables.items():
        app.Table(name, key_type=bytes, value_type=bytes, help=what)

    @app.agent(app.topic(*membership.topics, schema=Batches()), name=membership.group)
    async def consume(stream: Any) -> None:
        """Handle batches of records as the running role does."""
        await app.consume(stream)

    return app


def _free_port(host: str) -> int:
    """Return a port that is free now: Faust does not accept 0."""
    with socket.create_server((host, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _nothing(_: object) -> None:
    """Ignore it."""
