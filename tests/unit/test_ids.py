"""Ids never repeat, rise, and tell their time; derived ids depend on nothing else."""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.clock import SettableClock, SystemClock
from streams.errors import Refused, Unavailable
from streams.ids import (
    EPOCH,
    MAX_ID,
    ClockSkew,
    ClockWentBackwards,
    FixedWorkerId,
    Snowflakes,
    WorkerIdLost,
    derive_id,
    derive_root_id,
    lowest_id_at,
    time_of,
    worker_of,
)

START = datetime(2026, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
IDS = st.integers(0, MAX_ID)


class LeaseUntil:
    """A lease that ends when the clock says so."""

    worker_id = 7

    def __init__(self, clock: SettableClock, seconds: float) -> None:
        self._clock, self._until = clock, clock.monotonic() + seconds

    def valid(self) -> bool:
        return self._clock.monotonic() < self._until


def new_ids(clock: SettableClock, worker_id: int = 7) -> Snowflakes:
    return Snowflakes(clock, FixedWorkerId(worker_id))


def test_an_id_tells_its_time_and_its_worker() -> None:
    made = new_ids(SettableClock(START), worker_id=1023).next()

    assert time_of(made) == START
    assert worker_of(made) == 1023
    assert made == int((START - EPOCH).total_seconds() * 1000) << 22 | 1023 << 12


def test_the_last_id_of_the_last_worker_still_fits_a_positive_bigint() -> None:
    end = EPOCH + timedelta(milliseconds=2**41 - 1)
    assert new_ids(SettableClock(end), worker_id=1023).take(4096)[-1] == MAX_ID == 2**63 - 1


@given(
    st.lists(
        st.tuples(st.integers(-4_900, 2_000), st.sampled_from([1, 2, 5_000])),
        min_size=1,
        max_size=12,
    )
)
def test_ids_rise_whatever_the_clock_does_within_the_bridge(steps: list[tuple[int, int]]) -> None:
    clock = SettableClock(START)
    ids = new_ids(clock)
    made: list[int] = []
    for milliseconds, count in steps:
        clock.set(START + timedelta(milliseconds=milliseconds))
        if made and time_of(made[-1]) - clock.now() > timedelta(seconds=5):
            with pytest.raises(ClockWentBackwards):
                ids.next()
        else:
            made += ids.take(count)

    assert all(later > earlier for earlier, later in itertools.pairwise(made))
    assert {worker_of(one) for one in made} <= {7}


def test_a_full_millisecond_flows_over_into_the_next() -> None:
    made = new_ids(SettableClock(START)).take(4097)

    assert time_of(made[4095]) == START
    assert time_of(made[4096]) == START + timedelta(milliseconds=1)
    assert len(set(made)) == 4097


def test_a_clock_turned_back_by_five_seconds_goes_on_from_the_last_millisecond() -> None:
    clock = SettableClock(START)
    ids = new_ids(clock)
    first = ids.next()
    clock.set(START - timedelta(seconds=5))

    assert ids.next() == first + 1


def test_a_clock_turned_back_further_is_refused_until_it_has_caught_up() -> None:
    clock = SettableClock(START)
    ids = new_ids(clock)
    first = ids.next()
    clock.set(START - timedelta(seconds=5, milliseconds=1))
    with pytest.raises(ClockWentBackwards, match=r"5\.0 s behind") as caught:
        ids.next()
    assert isinstance(caught.value, Unavailable)
    assert caught.value.behind_ms == 5_001

    clock.set(START)
    assert ids.next() == first + 1


def test_no_ids_are_given_once_the_lease_has_run_out() -> None:
    clock = SettableClock(START)
    ids = Snowflakes(clock, LeaseUntil(clock, seconds=60))
    clock.advance(59.9)
    ids.next()
    clock.advance(0.1)

    with pytest.raises(WorkerIdLost, match="worker id 7"):
        ids.next()


def test_a_lease_is_measured_by_time_that_passes_not_by_the_time_of_day() -> None:
    clock = SettableClock(START)
    ids = Snowflakes(clock, LeaseUntil(clock, seconds=60))
    clock.set(START + timedelta(hours=1))
    assert time_of(ids.next()) == START + timedelta(hours=1)


def test_threads_that_share_a_generator_never_get_the_same_id() -> None:
    ids = Snowflakes(SystemClock(), FixedWorkerId(1))
    made: list[list[int]] = [[] for _ in range(4)]
    begin = threading.Barrier(4)

    def work(mine: list[int]) -> None:
        begin.wait()
        mine.extend(ids.next() for _ in range(5_000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({one for mine in made for one in mine}) == 20_000
    assert all(mine == sorted(mine) for mine in made)


@pytest.mark.parametrize("worker_id", [-1, 1024])
def test_a_worker_id_that_does_not_fit_is_refused(worker_id: int) -> None:
    with pytest.raises(ValueError, match="between 0 and 1023"):
        FixedWorkerId(worker_id)


@given(st.datetimes(datetime(2024, 1, 1), datetime(2090, 1, 1)), st.integers(0, 1023))
def test_ids_of_a_moment_are_never_below_its_lowest_id(moment: datetime, worker_id: int) -> None:
    moment = moment.replace(tzinfo=UTC)
    made = new_ids(SettableClock(moment), worker_id).next()
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    assert lowest_id_at(whole) <= made < lowest_id_at(whole + timedelta(microseconds=1))
    assert time_of(lowest_id_at(whole)) == whole


def test_the_lowest_id_before_there_were_any_is_zero() -> None:
    assert lowest_id_at(datetime(1999, 1, 1, tzinfo=UTC)) == 0


def test_a_time_without_zone_has_no_ids() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        lowest_id_at(datetime(2026, 1, 1))


def test_derived_ids_stay_what_they_were_when_first_released() -> None:
    cause = 285_000_000_000_000_001
    assert derive_id(cause, 0, "frame") == 4_020_986_416_267_446_224
    assert derive_root_id(cause, 3, "child") == 284_999_999_998_776_058


@given(IDS, st.integers(0, 10**6), st.text())
def test_derived_ids_fit_a_positive_bigint(cause: int, ordinal: int, purpose: str) -> None:
    assert 0 <= derive_id(cause, ordinal, purpose) <= MAX_ID
    assert 0 <= derive_root_id(cause, ordinal, purpose) <= MAX_ID


def test_every_argument_of_a_derived_id_counts() -> None:
    arguments = [(1, 1, "a"), (2, 1, "a"), (1, 2, "a"), (1, 1, "b"), (1, 12, "a"), (11, 2, "a")]
    assert len({derive_id(*each) for each in arguments}) == len(arguments)
    assert len({derive_root_id(*each) for each in arguments}) == len(arguments)


@given(IDS, st.text())
def test_a_derived_root_keeps_the_time_of_its_cause(cause: int, purpose: str) -> None:
    assert time_of(derive_root_id(cause, 5, purpose)) == time_of(cause)


def test_one_cause_never_names_two_children_alike() -> None:
    assert len({derive_root_id(1 << 40, n, "child") for n in range(50_000)}) == 50_000


@pytest.mark.parametrize(("seconds", "side"), [(7.5, "ahead of"), (-7.5, "behind")])
def test_a_clock_skew_says_by_how_much_and_what_to_do(seconds: float, side: str) -> None:
    error = ClockSkew(seconds, allowed=5)
    assert isinstance(error, Refused)
    assert f"7.5 s {side} that of Postgres" in str(error)
    assert "NTP" in str(error)
