"""The bench of replay: its events fold, and its plot shows every time."""

from __future__ import annotations

from collections import Counter
from itertools import count
from xml.etree import ElementTree

import pytest

from streams.dev.bench.long_loop import WINDOW, long_loop
from streams.dev.bench.replay_plot import replay_plot
from streams.events.model import Root
from streams.payload.port import Scope
from streams.projector.core import View, absorb
from tests.support.projector.executions import memory_log, stored_events

SVG = "{http://www.w3.org/2000/svg}"


async def test_a_long_loop_folds_with_as_many_open_frames_as_its_window() -> None:
    log, ids = memory_log(), count(5000)
    scope = Scope("acme", "care")
    events = list(long_loop(scope, lambda: next(ids), execution_id=4000, length=600))
    await log.append(events)
    view = View()
    for event in await stored_events(log, Root("execution", 4000)):
        view, _ = absorb(view, event)
    assert view.seq == len(events) == 600
    assert view.plan is not None
    (stage,) = view.plan.stages.values()
    assert WINDOW - 1 <= len(stage.frames) <= WINDOW
    kinds = Counter(event.type for event in events)
    assert stage.frames_done == kinds["frame.committed"] > 150
    assert kinds["frame.failed"] == 1
    assert view.ended.frame.length == stage.frames_done
    assert view.payloads.length == stage.frames_done


@pytest.mark.parametrize("points", [[(1000, 0.1, 0.09)], [(1000, 0.1, 0.09), (10**6, 20.0, 0.2)]])
def test_the_plot_has_a_dot_for_every_time(points: list[tuple[int, float, float]]) -> None:
    drawing = ElementTree.fromstring(replay_plot(points))
    assert len(drawing.findall(f"{SVG}circle")) == 2 * len(points)
    curves = [one.attrib["points"].split(" ") for one in drawing.findall(f"{SVG}polyline")]
    assert [len(one) for one in curves] == [len(points)] * 2
    for circle in drawing.findall(f"{SVG}circle"):
        assert 0 <= float(circle.attrib["cx"]) <= 640
        assert 0 <= float(circle.attrib["cy"]) <= 360
