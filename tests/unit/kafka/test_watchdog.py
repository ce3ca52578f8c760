"""When a reader has stalled: behind, and without progress for too long."""

from streams.kafka.feed.port import Standing
from streams.kafka.feed.watchdog import Patience


def test_a_reader_that_is_behind_without_progress_has_stalled_after_its_time():
    patience = Patience(60, now=0)
    assert patience.stalled_for(Standing(5, 1), 0) == 0
    assert patience.stalled_for(Standing(5, 1), 59) == 0
    assert patience.stalled_for(Standing(5, 1), 61) == 61


def test_progress_begins_the_time_anew_however_far_behind():
    patience = Patience(60, now=0)
    patience.stalled_for(Standing(5, 1), 0)
    assert patience.stalled_for(Standing(500, 2), 50) == 0
    assert patience.stalled_for(Standing(900, 2), 109) == 0
    assert patience.stalled_for(Standing(900, 2), 110) == 60


def test_an_idle_reader_never_stalls_and_its_idle_time_does_not_count():
    patience = Patience(60, now=0)
    assert patience.stalled_for(Standing(0, 1), 1000) == 0
    assert patience.stalled_for(Standing(1, 1), 1030) == 0


def test_a_beat_counts_as_progress():
    patience = Patience(60, now=0)
    patience.stalled_for(Standing(5, 1), 0)
    patience.beat(50)
    assert patience.stalled_for(Standing(5, 1), 100) == 0
