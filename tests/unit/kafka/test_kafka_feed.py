"""A feed whose broker cannot be reached reports it, and leaves nothing open."""

from __future__ import annotations

import gc
import socket
from pathlib import Path
from tempfile import gettempdir

import pytest

from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.kafka import KafkaFeed


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def folders() -> set[Path]:
    return set(Path(gettempdir()).glob("streams-feed-*"))


async def test_a_broker_that_is_down_is_reported_and_nothing_stays_open() -> None:
    before, broker = folders(), f"127.0.0.1:{closed_port()}"
    feed = KafkaFeed(broker, ["things"], group="g", instance="i")
    with pytest.raises(FeedUnavailable, match=r"group g cannot read things.*streams status"):
        async with feed:
            pass
    assert folders() <= before
    del feed
    gc.collect()  # an open loop or socket would be a warning, and so an error


async def test_a_feed_that_is_never_opened_leaves_nothing() -> None:
    before = folders()
    KafkaFeed("127.0.0.1:1", ["things"], group="g", instance="i")
    gc.collect()
    assert folders() <= before
