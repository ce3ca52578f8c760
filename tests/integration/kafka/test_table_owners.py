"""A partition's tables have one writer: its owner, even if a former one is still running."""

from __future__ import annotations

import signal

import pytest

from tests.support.kafka.table_member import table_member
from tests.support.kafka.tables import contents, delete_changelogs, running
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
async def changelogs(topic):
    yield
    await delete_changelogs(topic.bootstrap, topic.name)


async def test_a_frozen_process_cannot_write_once_another_has_its_partition(topic, tmp_path):
    async with table_member(topic.bootstrap, topic.name, tmp_path / "one") as former:
        assert await former.ask("write", "first") == "written"
        former.signal(signal.SIGSTOP)
        # The same static member: the broker gives it the partitions at once.
        async with table_member(topic.bootstrap, topic.name, tmp_path / "two") as owner:
            assert await owner.ask("read") == "first"
            assert await owner.ask("write", "second") == "written"
            await former.send("write", "stale")
            former.signal(signal.SIGCONT)
            response = await former.response()
            assert response is None or response.startswith("lost"), response
            assert await owner.ask("write", "third") == "written"
    async with running(topic.bootstrap, topic.name, tmp_path / "three") as tables:
        assert contents(tables)["things"] == {b"a": b"third"}


async def test_an_open_transaction_of_a_killed_owner_is_ended_by_the_next_one(topic, tmp_path):
    async with table_member(topic.bootstrap, topic.name, tmp_path / "one") as former:
        assert await former.ask("write", "first") == "written"
        assert await former.ask("open", "uncommitted") == "sent"
        former.signal(signal.SIGKILL)
        await former.process.wait()
    async with table_member(topic.bootstrap, topic.name, tmp_path / "two") as owner:
        assert await owner.ask("read") == "first"
        assert await owner.ask("write", "second") == "written"
    async with running(topic.bootstrap, topic.name, tmp_path / "three") as tables:
        assert contents(tables)["things"] == {b"a": b"second"}


async def test_a_standby_takes_over_what_the_owner_wrote(topic, tmp_path):
    async with (
        table_member(topic.bootstrap, topic.name, tmp_path / "one") as first,
        table_member(topic.bootstrap, topic.name, tmp_path / "two", instance="two") as second,
    ):
        written = {"one": await first.ask("write", "x"), "two": await second.ask("write", "x")}
        (owner,) = [name for name, outcome in written.items() if outcome == "written"]
        one, other = (first, second) if owner == "one" else (second, first)
        assert await one.ask("write", "last") == "written"
        one.signal(signal.SIGKILL)

        async def is_taken_over() -> bool:
            return bool(await other.ask("owns"))

        await until(is_taken_over, within_s=60, every_s=0.2)
        assert await other.ask("read") == "last"
        assert await other.ask("write", "after") == "written"
