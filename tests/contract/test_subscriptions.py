"""What subscriptions in the catalog promise, over a log in memory and in Postgres alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from streams.app import open_log
from streams.catalog.catalog import Catalog
from streams.catalog.errors import OtherKind, UnknownPath
from streams.catalog.memory import MemoryCatalogEvents, MemorySubscriptionEvents
from streams.catalog.port import CatalogEvents, SubscriptionEvents
from streams.catalog.postgres import PostgresCatalogEvents, PostgresSubscriptionEvents
from streams.catalog.subscription_state import ReplayRange
from streams.catalog.subscriptions import NotSteered, Subscriptions
from streams.clock import SystemClock
from streams.ids import FixedWorkerId, Snowflakes
from streams.log.memory import MemoryEventStore
from streams.payload.port import Scope
from streams.settings import Settings
from streams.subscription.errors import BadSubscription
from tests.contract.test_catalog import text as playbook_text
from tests.support.events.examples import PRODUCER, codec

SCOPE, OTHER = Scope("acme", "care"), Scope("globex", "labs")


def text(path: str, topic: str = "orders") -> str:
    return f"""\
apiVersion: noetl.io/v1
kind: Subscription
metadata: {{name: orders, path: {path}}}
spec:
  source: kafka
  topic: {topic}
  dispatch: {{playbook: shop/order}}
"""


@dataclass(frozen=True, slots=True)
class Shop:
    catalog: Catalog
    subscriptions: Subscriptions


@pytest.fixture
async def shop(place: Settings | None) -> AsyncIterator[Shop]:
    clock = SystemClock()
    if place is None:
        ids = Snowflakes(clock, FixedWorkerId(1))
        store = MemoryEventStore(codec=codec(), next_id=ids.next, producer=PRODUCER, clock=clock)
        events: CatalogEvents = MemoryCatalogEvents(store)
        everything: SubscriptionEvents = MemorySubscriptionEvents(store)
        catalog = Catalog(store, events, next_id=ids.next, clock=clock)
        yield Shop(catalog, Subscriptions(store, events, everything, catalog, clock))
        return
    async with open_log(place, role="test") as log:
        events = PostgresCatalogEvents(log.pool, log.codec)
        everything = PostgresSubscriptionEvents(log.pool, log.codec)
        catalog = Catalog(log.store, events, next_id=log.ids.next, clock=clock)
        yield Shop(catalog, Subscriptions(log.store, events, everything, catalog, clock))


async def test_a_registered_subscription_is_found_with_its_document(shop: Shop) -> None:
    made = await shop.catalog.register(SCOPE, text("one/found"))
    state = await shop.subscriptions.find(SCOPE, "one/found")
    assert (state.catalog_id, state.version, state.scope) == (made.catalog_id, 1, SCOPE)
    document = await shop.subscriptions.document(state)
    assert document.kafka is not None
    assert (document.path, document.kafka.topic) == ("one/found", "orders")


async def test_unchanged_content_is_the_same_version_and_changed_content_the_next(
    shop: Shop,
) -> None:
    await shop.catalog.register(SCOPE, text("two/versions"))
    again = await shop.catalog.register(SCOPE, text("two/versions"))
    assert (again.version, again.is_new) == (1, False)
    await shop.catalog.register(SCOPE, text("two/versions", "returns"))
    state = await shop.subscriptions.find(SCOPE, "two/versions")
    document = await shop.subscriptions.document(state)
    assert document.kafka is not None
    assert (state.version, document.kafka.topic) == (2, "returns")


async def test_subscriptions_of_all_tenants_are_listed_and_playbooks_are_not(shop: Shop) -> None:
    await shop.catalog.register(SCOPE, text("three/mine"))
    await shop.catalog.register(OTHER, text("three/theirs"))
    await shop.catalog.register(SCOPE, playbook_text("three/playbook"))
    paths = {one.path for one in await shop.subscriptions.all()}
    assert {"three/mine", "three/theirs"} <= paths
    assert "three/playbook" not in paths
    mine = {one.path for one in await shop.subscriptions.list(SCOPE)}
    assert "three/mine" in mine
    assert not {"three/theirs", "three/playbook"} & mine


async def test_a_path_has_one_kind(shop: Shop) -> None:
    await shop.catalog.register(SCOPE, text("four/sub"))
    await shop.catalog.register(SCOPE, playbook_text("four/play"))
    with pytest.raises(OtherKind, match="four/sub: is a subscription, not a playbook"):
        await shop.catalog.register(SCOPE, playbook_text("four/sub"))
    with pytest.raises(OtherKind, match="is a playbook, not a subscription"):
        await shop.catalog.register(SCOPE, text("four/play"))
    with pytest.raises(UnknownPath, match="there is no playbook 'four/sub'"):
        await shop.catalog.resolve("acme", "care", "four/sub")
    with pytest.raises(UnknownPath, match="there is no subscription 'four/play'"):
        await shop.subscriptions.find(SCOPE, "four/play")


async def test_a_bad_document_is_not_registered(shop: Shop) -> None:
    with pytest.raises(BadSubscription, match="is not a valid topic name"):
        await shop.catalog.register(SCOPE, text("five/bad", "a/b"))
    with pytest.raises(UnknownPath):
        await shop.subscriptions.find(SCOPE, "five/bad")


async def test_pause_and_resume_alternate(shop: Shop) -> None:
    await shop.catalog.register(SCOPE, text("six/paused"))
    with pytest.raises(NotSteered, match="is not paused"):
        await shop.subscriptions.resume(SCOPE, "six/paused")
    assert (await shop.subscriptions.pause(SCOPE, "six/paused", by="ada")).is_paused
    with pytest.raises(NotSteered, match="paused already"):
        await shop.subscriptions.pause(SCOPE, "six/paused")
    assert not (await shop.subscriptions.resume(SCOPE, "six/paused")).is_paused
    assert (await shop.subscriptions.pause(SCOPE, "six/paused")).is_paused


async def test_a_new_version_stays_paused(shop: Shop) -> None:
    await shop.catalog.register(SCOPE, text("seven/paused"))
    await shop.subscriptions.pause(SCOPE, "seven/paused")
    await shop.catalog.register(SCOPE, text("seven/paused", "returns"))
    state = await shop.subscriptions.find(SCOPE, "seven/paused")
    assert (state.version, state.is_paused) == (2, True)


async def test_replays_are_numbered(shop: Shop) -> None:
    await shop.catalog.register(SCOPE, text("eight/replayed"))
    wanted = ReplayRange(
        number=0, topic="orders", topic_id="T", partition=1, from_offset=5, until_offset=9
    )
    await shop.subscriptions.replay(SCOPE, "eight/replayed", wanted)
    state = await shop.subscriptions.replay(SCOPE, "eight/replayed", wanted, by="ada")
    assert [one.number for one in state.replays] == [1, 2]
    assert (state.replays[1].from_offset, state.replays[1].until_offset) == (5, 9)
    assert state.replay_reader(state.replays[1]) == f"{state.catalog_id}.2"


async def test_the_mark_changes_with_every_event_of_a_subscription(shop: Shop) -> None:
    marks = [await shop.subscriptions.mark()]
    await shop.catalog.register(SCOPE, text("nine/marked"))
    marks.append(await shop.subscriptions.mark())
    await shop.catalog.register(SCOPE, text("nine/marked", "returns"))
    marks.append(await shop.subscriptions.mark())
    await shop.subscriptions.pause(SCOPE, "nine/marked")
    marks.append(await shop.subscriptions.mark())
    assert len(set(marks)) == 4
    await shop.catalog.register(SCOPE, playbook_text("nine/playbook"))
    assert await shop.subscriptions.mark() == marks[-1]
