"""Fact topics as a whole, for commands: reading, comparing with the log, rebuilding."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from streams.app import event_store_of, open_pool, open_registry
from streams.events.codec import Codec
from streams.facts.codec import FactCodec
from streams.facts.comparison import FactComparison, compare
from streams.facts.content import FactContent, open_content
from streams.facts.kafka import KafkaFacts
from streams.facts.model import Fact
from streams.facts.rebuild import RebuiltFacts
from streams.facts.rebuild import rebuild_facts as rebuild
from streams.facts.views import ROOTS
from streams.log.port import EventStore
from streams.log.postgres import PostgresEventStore
from streams.projector.heads import PostgresRootHeads, RootTotals
from streams.settings import Settings

OnEvents = Callable[[int], object]


class _Sources(NamedTuple):
    content: FactContent
    heads: PostgresRootHeads
    log: EventStore
    codec: FactCodec


async def fact_totals(settings: Settings) -> RootTotals:
    """Return how many roots and events have facts.

    Raises:
        Unavailable: Postgres cannot be reached.
    """
    async with open_pool(settings.event_store.canonical_connection.dsn("read")) as pool:
        return await PostgresRootHeads(pool, types=ROOTS).totals()


async def compare_facts(settings: Settings, on_events: OnEvents = lambda _: None) -> FactComparison:
    """Compare all fact topics with a fold of the log; nothing is changed.

    Raises:
        Unavailable: Postgres or Kafka cannot be reached.
    """
    async with _open(settings) as sources:
        await sources.content.read()
        return await compare(*sources, on_events=on_events)


async def rebuild_facts(settings: Settings, on_events: OnEvents = lambda _: None) -> RebuiltFacts:
    """Make the fact topics equal to the log; the facts role may go on.

    Raises:
        Unavailable: Postgres or Kafka cannot be reached; run it again.
    """
    bootstrap, limit_s = settings.event_store.connection.url, settings.runtime.call_limit_s
    async with (
        _open(settings) as sources,
        KafkaFacts(bootstrap, name="noetl.facts-rebuild", limit_s=limit_s) as writer,
    ):
        return await rebuild(*sources, writer, on_events)


async def newest_facts(
    settings: Settings, topic: str, *, key: str | None, limit: int
) -> Sequence[Fact]:
    """Return the newest facts of a topic by position, those of a key or below it if given.

    Raises:
        Unavailable: Kafka cannot be reached.
    """
    async with (
        open_registry(settings) as registry,
        open_content(settings.event_store.connection.url, (topic,)) as content,
    ):
        codec = await FactCodec.open(registry)
        await content.read()
        found = [
            await codec.decode(topic, value)
            for name, value in content.values[topic].items()
            if key is None or f"{name.decode()}/".startswith(f"{key}/")
        ]
    return sorted(found, key=lambda one: one.position, reverse=True)[:limit]


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[_Sources]:
    dsn = settings.event_store.canonical_connection.dsn("read")
    async with (
        open_registry(settings) as registry,
        open_pool(dsn, limit_s=settings.runtime.call_limit_s) as pool,
        open_content(settings.event_store.connection.url) as content,
    ):
        codec = await Codec.open(registry)
        log = event_store_of(PostgresEventStore(None, pool, codec), pool, codec, settings)
        yield _Sources(
            content,
            PostgresRootHeads(pool, types=ROOTS),
            log,
            await FactCodec.open(registry),
        )
