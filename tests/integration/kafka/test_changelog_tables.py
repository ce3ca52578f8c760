"""Tables with changelogs on the real broker: restarts, losses, fencing, aborted transactions."""

from __future__ import annotations

import logging
import shutil

import pytest

from streams.kafka.tables.port import PartitionLost
from tests.support.kafka.tables import TABLES, contents, delete_changelogs, running

pytestmark = pytest.mark.stack


@pytest.fixture(autouse=True)
async def changelogs(topic):
    yield
    await delete_changelogs(topic.bootstrap, topic.name)


async def fill(tables, count: int = 20) -> None:
    for partition in sorted(tables.owned):
        names = [b"%d/%d" % (partition, number) for number in range(count)]
        await tables.write(partition, {name: {key: key * 2 for key in names} for name in TABLES})
        await tables.write(partition, {"things": {names[0]: None, names[1]: b"other"}})


@pytest.mark.parametrize("lost", ["nothing", "the files"])
async def test_a_restart_finds_what_was_written(topic, tmp_path, caplog, lost):
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        assert tables.owned == {0, 1}
        await fill(tables)
        before = contents(tables)
    assert (len(before["things"]), len(before["parts"])) == (38, 40)
    if lost == "the files":
        shutil.rmtree(tmp_path)
    with caplog.at_level(logging.INFO):
        async with running(topic.bootstrap, topic.name, tmp_path) as tables:
            assert contents(tables) == before
    source = "changelog" if lost == "the files" else "disk"
    assert f"tables recovered from {source}" in caplog.text


async def test_files_of_a_deleted_changelog_are_recreated(topic, tmp_path, caplog):
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        await fill(tables)
    await delete_changelogs(topic.bootstrap, topic.name)
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        assert contents(tables) == {"things": {}, "parts": {}}
        await fill(tables)
        before = contents(tables)
    assert "is of another changelog: recreated" in caplog.text
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        assert contents(tables) == before


async def test_reading_returns_values_in_the_order_of_their_keys(topic, tmp_path):
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        await fill(tables)
        assert tables.read(0, "things", [b"0/2", b"0/0", b"0/1"]) == [b"0/20/2", None, b"other"]


async def test_a_value_larger_than_a_batch_is_written(topic, tmp_path):
    values = {b"%d" % number: b"x" * 300_000 for number in range(3)}
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        await tables.write(0, {"things": values})
    shutil.rmtree(tmp_path)
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        assert contents(tables)["things"] == values


async def test_a_revoked_partition_is_not_written(topic, tmp_path):
    async with running(topic.bootstrap, topic.name, tmp_path) as tables:
        await tables.unfence()
        with pytest.raises(PartitionLost):
            await tables.write(0, {"things": {b"a": b"b"}})
        assert contents(tables) == {"things": {}, "parts": {}}
