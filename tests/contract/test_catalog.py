"""What the catalog promises, over a log in memory and in Postgres alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from streams.app import open_log
from streams.catalog.catalog import INLINE_BYTES, Catalog
from streams.catalog.errors import TooLong, UnknownPath, UnknownVersion
from streams.catalog.memory import MemoryCatalogEvents
from streams.catalog.port import CatalogEvents
from streams.catalog.postgres import PostgresCatalogEvents
from streams.clock import SystemClock
from streams.events.model import NewEvent, Root
from streams.ids import FixedWorkerId, Snowflakes
from streams.log.memory import MemoryEventStore
from streams.log.port import EventStore
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import PayloadStore, Scope
from streams.playbook.errors import BadPlaybook
from streams.settings import Settings
from tests.support.events.examples import AT, PRODUCER, codec

SCOPE, OTHER = Scope("acme", "care"), Scope("acme", "labs")


def text(path: str, note: str = "one") -> str:
    """Return a playbook of one step."""
    return f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{path: {path}, description: {note}}}
workflow:
  - step: start
    tool: {{kind: noop}}
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A log, and what is needed to open a catalog on it."""

    store: EventStore
    events: CatalogEvents
    next_id: Callable[[], int]

    def catalog(self, payloads: PayloadStore | None = None) -> Catalog:
        return Catalog(
            self.store, self.events, next_id=self.next_id, clock=SystemClock(), payloads=payloads
        )


@pytest.fixture
async def subject(place: Settings | None) -> AsyncIterator[Subject]:
    if place is None:
        clock = SystemClock()
        ids = Snowflakes(clock, FixedWorkerId(1))
        store = MemoryEventStore(codec=codec(), next_id=ids.next, producer=PRODUCER, clock=clock)
        yield Subject(store, MemoryCatalogEvents(store), ids.next)
    else:
        async with open_log(place, role="test") as log:
            events = PostgresCatalogEvents(log.pool, log.codec)
            yield Subject(log.store, events, log.ids.next)


@pytest.fixture
def catalog(subject: Subject) -> Catalog:
    return subject.catalog()


async def test_a_trigger_right_after_a_registration_finds_it(catalog: Catalog) -> None:
    made = await catalog.register(SCOPE, text("found/at/once"))
    assert (made.path, made.version, made.is_new) == ("found/at/once", 1, True)
    found = await catalog.resolve("acme", "care", "found/at/once")
    assert found == (made.catalog_id, 1)
    assert (await catalog.get(*found)).path == "found/at/once"


async def test_new_content_is_a_new_version_of_the_same_entry(catalog: Catalog) -> None:
    first = await catalog.register(SCOPE, text("v", "one"))
    second = await catalog.register(SCOPE, text("v", "two"))
    assert (second.catalog_id, second.version) == (first.catalog_id, 2)
    assert await catalog.resolve("acme", "care", "v") == (first.catalog_id, 2)
    assert await catalog.resolve("acme", "care", "v", 1) == (first.catalog_id, 1)
    assert await catalog.content(first.catalog_id, 1) == text("v", "one")


async def test_the_same_content_again_is_the_same_version_and_no_event(subject: Subject) -> None:
    catalog = subject.catalog()
    first = await catalog.register(SCOPE, text("same"))
    again = await catalog.register(SCOPE, text("same"))
    assert (again.catalog_id, again.version, again.is_new) == (first.catalog_id, 1, False)
    root = Root("catalog", first.catalog_id)
    assert len([event async for event in subject.store.read_root(root)]) == 1


async def test_going_back_to_an_older_content_is_a_new_version(catalog: Catalog) -> None:
    for note in ("one", "two", "one"):
        made = await catalog.register(SCOPE, text("back", note))
    assert made.version == 3


async def test_many_that_register_at_once_make_one_entry(subject: Subject) -> None:
    catalogs = [subject.catalog() for _ in range(8)]
    made = await asyncio.gather(*[one.register(SCOPE, text("at/once")) for one in catalogs])
    assert len({(one.catalog_id, one.version) for one in made}) == 1
    assert sum(one.is_new for one in made) == 1
    made = await asyncio.gather(
        *[one.register(SCOPE, text("at/once", f"n{at}")) for at, one in enumerate(catalogs)]
    )
    assert sorted(one.version for one in made) == list(range(2, 10))


async def test_organizations_do_not_see_each_other(catalog: Catalog) -> None:
    mine = await catalog.register(SCOPE, text("private"))
    with pytest.raises(UnknownPath):
        await catalog.resolve("acme", "labs", "private")
    theirs = await catalog.register(OTHER, text("private"))
    assert theirs.catalog_id != mine.catalog_id
    assert [entry.path for entry in await catalog.list(OTHER)].count("private") == 1


async def test_an_unknown_path_is_refused_with_the_nearest(catalog: Catalog) -> None:
    await catalog.register(SCOPE, text("reports/daily"))
    with pytest.raises(UnknownPath, match="did you mean 'reports/daily'"):
        await catalog.resolve("acme", "care", "reports/dialy")


async def test_an_unknown_version_is_refused_with_those_there_are(catalog: Catalog) -> None:
    made = await catalog.register(SCOPE, text("few"))
    with pytest.raises(UnknownVersion, match="no version 7; available: 1"):
        await catalog.resolve("acme", "care", "few", 7)
    with pytest.raises(UnknownVersion, match="available: 1"):
        await catalog.get(made.catalog_id, 7)


async def test_a_retired_version_is_not_started_but_still_read(subject: Subject) -> None:
    catalog = subject.catalog()
    made = [await catalog.register(SCOPE, text("old", note)) for note in ("one", "two")]
    await subject.store.append([_retired(made[1].catalog_id, "old", 2)])
    assert await catalog.resolve("acme", "care", "old") == (made[0].catalog_id, 1)
    with pytest.raises(UnknownVersion):
        await catalog.resolve("acme", "care", "old", 2)
    assert (await catalog.get(made[1].catalog_id, 2)).path == "old"
    assert (await catalog.register(SCOPE, text("old", "two"))).version == 3


async def test_a_version_is_compiled_once(catalog: Catalog) -> None:
    made = await catalog.register(SCOPE, text("kept"))
    first = await catalog.get(made.catalog_id, 1)
    assert await catalog.get(made.catalog_id, 1) is first


async def test_a_playbook_with_errors_is_not_registered(catalog: Catalog) -> None:
    with pytest.raises(BadPlaybook, match="no tool 'nop'"):
        await catalog.register(SCOPE, text("bad").replace("noop", "nop"))
    with pytest.raises(UnknownPath):
        await catalog.resolve("acme", "care", "bad")


async def test_a_long_playbook_is_kept_outside_the_log(subject: Subject) -> None:
    content = text("long", "x" * INLINE_BYTES)
    with pytest.raises(TooLong):
        await subject.catalog().register(SCOPE, content)
    catalog = subject.catalog(MemoryPayloadStore())
    made = await catalog.register(SCOPE, content)
    assert await catalog.content(made.catalog_id, 1) == content


async def test_the_list_has_the_newest_version_of_every_path(catalog: Catalog) -> None:
    scope = Scope("acme", "listed")
    for path, note in (("b", "one"), ("a", "one"), ("b", "two")):
        await catalog.register(scope, text(path, note))
    assert [(one.path, one.version) for one in await catalog.list(scope)] == [("a", 1), ("b", 2)]


def _retired(catalog_id: int, path: str, version: int) -> NewEvent:
    return NewEvent(
        type="catalog.retired",
        root=Root("catalog", catalog_id),
        tenant_id="acme",
        organization_id="care",
        idempotency_key=f"catalog.retired/{version}",
        event_time=AT,
        meta={"path": path, "version": version},
    )
