"""A rebuild that would lose or double rows is refused before anything is changed."""

from __future__ import annotations

import pytest

from streams.analytics.errors import TopicsTrimmed
from streams.analytics.lag import LagReader, SinkLag, SinkPartition
from streams.analytics.rebuild import check_rebuild
from streams.analytics.sinks import AnalyticsSink
from streams.errors import Refused
from streams.mirror.connectors import Connector

ROWS = AnalyticsSink(Connector("rows", {}), ("a",), "dead")
LAKE = AnalyticsSink(Connector("lake", {"iceberg.control.topic": "c"}), ("a",), "dead")


class Topics(LagReader):
    """Reports one topic that begins at an offset."""

    def __init__(self, first: int) -> None:
        self._first = first

    def read(self, sink: AnalyticsSink) -> SinkLag:
        return SinkLag(sink.name, (SinkPartition("a", 0, self._first, 9, 9),), 0)


@pytest.mark.parametrize("sink", [ROWS, LAKE])
async def test_whole_topics_allow_a_rebuild(sink: AnalyticsSink) -> None:
    assert (await check_rebuild(Topics(0), sink, keep_rows=False)).sink == sink.name


async def test_topics_without_their_first_events_are_refused_and_named() -> None:
    with pytest.raises(TopicsTrimmed, match=r"rows cannot be rebuilt: a no longer begin"):
        await check_rebuild(Topics(3), ROWS, keep_rows=False)


async def test_rows_that_are_kept_can_be_repaired_from_what_is_left() -> None:
    assert (await check_rebuild(Topics(3), ROWS, keep_rows=True)).trimmed == ("a",)


async def test_a_sink_that_appends_cannot_keep_its_rows() -> None:
    with pytest.raises(Refused, match="would write every row a second time"):
        await check_rebuild(Topics(0), LAKE, keep_rows=True)
