"""Committing below the lowest unfinished record, whatever the order of finishing."""

from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.feed.offsets import Offsets


def delivered(*offsets: int) -> Offsets:
    made = Offsets()
    for offset in offsets:
        made.deliver(offset)
    return made


def test_without_records_the_position_itself_is_committed():
    assert Offsets().committable(7) == 7


def test_an_unfinished_record_holds_the_commit_back_whatever_finished_above_it():
    offsets = delivered(3, 4, 5)
    offsets.finish(4)
    offsets.finish(5)
    assert offsets.committable(6) == 3
    assert offsets.span == 3


def test_when_the_lowest_finishes_the_commit_jumps_over_all_that_finished_before():
    offsets = delivered(3, 4, 5, 6)
    offsets.finish(4)
    offsets.finish(5)
    offsets.finish(3)
    assert offsets.committable(7) == 6
    assert offsets.span == 1


def test_with_everything_finished_the_commit_passes_the_marker_of_a_transaction():
    offsets = delivered(3)
    offsets.finish(3)
    assert offsets.committable(5) == 5


def test_finishing_twice_or_what_was_never_delivered_is_no_news():
    offsets = delivered(3)
    assert offsets.finish(3)
    assert not offsets.finish(3)
    assert not offsets.finish(99)
    assert offsets.committable(4) == 4


@given(st.data())
def test_the_commit_never_passes_an_unfinished_record_and_never_lags_behind_a_finished_run(data):
    gaps = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=30))
    places = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    offsets, unfinished, handed = Offsets(), set(), 0
    position = 0
    for deliver in data.draw(st.lists(st.booleans(), max_size=80)):
        if deliver and handed < len(places):
            offsets.deliver(places[handed])
            unfinished.add(places[handed])
            position = places[handed] + 1
            handed += 1
        elif unfinished:
            done = data.draw(st.sampled_from(sorted(unfinished)))
            unfinished.discard(done)
            assert offsets.finish(done)
        assert offsets.committable(position) == min(unfinished, default=position)
