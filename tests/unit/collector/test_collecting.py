"""Whole runs of the collector, in memory: what it believes, what it keeps, what it refuses."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import orjson
import pytest

from streams.collector.collect import OWNER_KEY
from streams.collector.core import Due, RootState
from streams.collector.errors import BucketOfNobody, LockLost
from streams.collector.expiry import expire
from streams.payload.content import describe, key_of, live_key, reference_json, trash_key
from streams.payload.objects.blocks import NoCipher, pack
from streams.payload.objects.memory import MemoryObjects
from streams.payload.port import JSON, Scope
from tests.conftest import make_event
from tests.support.collector.memory import ACME, World

DAY = 25.0


class TornObjects(MemoryObjects):
    """Shows half of an object for the first so many streams of it."""

    torn = 0

    async def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        data = self._found(key)
        self.torn -= 1
        yield data if self.torn < 0 else data[: len(data) // 2]


@pytest.mark.parametrize("name", ["care", "trash", "sha256"])
async def test_an_organization_may_have_any_name(name: str) -> None:
    world, scope = World(), Scope("sha256", name)
    ref = await world.put(b"named late", scope)
    assert (await world.collect(hours_later=DAY)).trashed == 1
    assert await world.store.get(ref) == b"named late"
    world.name(ref, scope=scope)
    report = await world.collect(hours_later=DAY)
    assert (report.restored, report.unknown, report.dangling_count) == (1, 1, 0)
    assert set(world.objects.objects) == {OWNER_KEY, key_of(ref)}
    assert live_key(trash_key(key_of(ref))) == key_of(ref)


async def test_a_payload_that_was_read_torn_keeps_what_it_names() -> None:
    """Not packed, half of it is no error by itself: only its digest tells."""
    world = World(TornObjects)
    inner = await world.put(b"inner")
    outer = await world.put(orjson.dumps({"much": "x" * 1000, "ref": reference_json(inner)}))
    world.name(outer)
    world.objects.torn = 2
    report = await world.collect(hours_later=DAY)
    assert (report.unreadable, report.trashed) == ((key_of(outer),), 0)
    assert not world.ledger.remembered
    world.objects.torn = 1
    report = await world.collect()
    assert (report.unreadable, report.live) == ((), 2)


@pytest.mark.parametrize("compression", ["none", "zstd"])
async def test_a_damaged_payload_is_named_and_holds_its_organization(compression: str) -> None:
    world = World(compression=compression)  # type: ignore[arg-type]
    damaged = await world.put(b"damaged" * 1000)
    world.name(damaged)
    other = pack(ACME, b"another!" * 1000, "none", NoCipher())
    await world.objects.write(key_of(damaged), other)
    report = await world.collect(hours_later=DAY)
    assert (report.unreadable, report.orphans) == ((key_of(damaged),), 0)
    await world.put(b"orphan")
    report = await world.collect(hours_later=DAY)
    assert (report.orphans, report.trashed, report.is_whole) == (1, 0, False)


async def test_a_payload_that_was_read_before_is_read_again_on_demand() -> None:
    world = World()
    inner = await world.put(b"inner")
    outer = await world.put(orjson.dumps(reference_json(inner)))
    world.name(outer)
    assert (await world.collect(hours_later=DAY)).is_whole
    await world.objects.write(key_of(outer), b"damaged")
    report = await world.collect(hours_later=DAY)
    assert (report.live, report.trashed) == (2, 0), "what it names is known"
    assert (await world.collect(dry_run=True, verify=True)).unreadable == (key_of(outer),)


async def test_what_is_missing_inside_a_payload_is_told() -> None:
    world = World()
    gone, digest = (describe(ACME, data, media_type=JSON) for data in (b"gone", b"digest"))
    foreign = describe(Scope("acme", "other"), b"gone", media_type=JSON)
    world.name(
        await world.put(
            orjson.dumps([reference_json(gone), {"sha256": digest.sha256}, foreign.uri])
        )
    )
    for _ in range(2):
        report = await world.collect(hours_later=DAY)
        assert (report.dangling, report.is_whole) == ((key_of(gone),), False)


async def test_nothing_moves_once_the_lock_is_lost() -> None:
    world = World()
    for data in (b"one", b"two", b"three"):
        await world.put(data)
    world.ledger.checks_left = 1
    with pytest.raises(LockLost, match="again"):
        await world.collect(hours_later=DAY)
    assert len([key for key in world.objects.objects if "/trash/" in key]) == 1


async def test_of_two_copies_the_one_in_the_trash_stays_for_a_grace() -> None:
    """It may be half of a move whose other half would take away the one in its place."""
    world = World()
    ref = await world.put(b"both")
    world.name(ref)
    await world.objects.write(trash_key(key_of(ref)), b"both")
    report = await world.collect()
    assert (report.restored, report.in_trash) == (0, 1)
    await world.objects.remove(key_of(ref))
    assert await world.store.get(ref) == b"both"
    assert (await world.collect()).restored == 1
    await world.objects.write(trash_key(key_of(ref)), b"both")
    assert (await world.collect(hours_later=DAY)).in_trash == 0
    assert set(world.objects.objects) == {OWNER_KEY, key_of(ref)}


async def test_files_that_a_writer_left_behind_go_after_the_grace() -> None:
    world = World()
    ref = await world.put(b"there")
    world.name(ref)
    folder, _, digest = key_of(ref).rpartition("/")
    await world.objects.write(f"{folder}/.{digest}.0123", b"half")
    report = await world.collect(hours_later=1)
    assert (report.objects, report.unknown, len(world.objects.objects)) == (1, 0, 3)
    await world.collect(hours_later=DAY)
    assert set(world.objects.objects) == {OWNER_KEY, key_of(ref)}


async def test_objects_of_which_the_log_names_none_are_not_claimed() -> None:
    world = World()
    ref = await world.put(b"another log's")
    for _ in range(2):
        with pytest.raises(BucketOfNobody, match="--claim"):
            await world.collect(hours_later=DAY, claim=False)
    assert (await world.collect(dry_run=True, claim=False)).orphans == 1
    assert set(world.objects.objects) == {key_of(ref)}
    assert (await world.collect(claim=True)).trashed == 1
    assert (await world.collect(claim=False)).in_trash == 1, "it was claimed"


async def test_what_somebody_ends_meanwhile_does_not_stop_the_rest() -> None:
    world = World()
    roots = [RootState(number, "execution", "acme", "care", None) for number in (7, 8)]
    await world.log.append([make_event(root.id) for root in roots])
    now = world.clock.now()
    by_hand, by_time = Due(roots[0], 55, "manual"), Due(roots[0], 55, "ttl")
    other = Due(roots[1], 66, "ttl")
    assert await expire(world.ports, [by_hand], now) == [by_hand]
    assert await expire(world.ports, [other, by_time], now) == [other]
    assert await expire(world.ports, [other, by_time], now) == [other]
    ends = [e async for e in world.log.read_root(make_event(7).root) if e.type == "result.expired"]
    assert [end.meta["reason"] for end in ends] == ["manual"]
