"""Counts of a table compared with the records of its topic: every difference shows."""

from __future__ import annotations

from streams.dev.bench.table_kills import COUNTED_KEYS, compare
from streams.dev.bench.table_options import PARTITIONS, row, rows_of
from streams.dev.bench.tables import Sizes, faults_of

NUMBERS = [1, 2, 2 + COUNTED_KEYS]
RIGHT = {"1": [1, 1], "2": [2, 4 + COUNTED_KEYS]}


def test_equal_counts_and_sums_are_right() -> None:
    found = compare(NUMBERS, RIGHT)

    assert (found.records, found.lost, found.doubled, found.wrong_keys) == (3, 0, 0, 0)
    assert faults_of(found, 3) == []


def test_a_record_that_was_not_counted_is_lost() -> None:
    found = compare(NUMBERS, {"1": [1, 1], "2": [1, 2]})

    assert (found.lost, found.doubled, found.wrong_keys) == (1, 0, 1)
    assert compare(NUMBERS, {}).lost == 3


def test_a_record_that_was_counted_twice_is_doubled() -> None:
    assert compare(NUMBERS, {**RIGHT, "1": [2, 2]}).doubled == 1
    assert compare(NUMBERS, {**RIGHT, "9": [1, 9]}).doubled == 1


def test_one_lost_and_another_doubled_is_a_wrong_key() -> None:
    found = compare(NUMBERS, {**RIGHT, "2": [2, 4]})

    assert (found.lost, found.doubled, found.wrong_keys) == (0, 0, 1)
    assert faults_of(found, 3) == ["1 keys are wrong"]


def test_missing_records_of_the_topic_are_a_fault() -> None:
    assert len(faults_of(compare(NUMBERS, RIGHT), 4)) == 1


def test_the_rows_of_all_partitions_are_all_rows() -> None:
    parts = [rows_of(one, 40, 50) for one in range(PARTITIONS)]

    assert sum(map(len, parts)) == 10
    assert {key for part in parts for key in part} == {row(number)[0] for number in range(40, 50)}


def test_a_small_bench_has_enough_records_for_its_kills() -> None:
    assert Sizes(1000).counted == 2000
    assert (Sizes(1_000_000).events, Sizes(1_000_000).stock_events) == (300_000, 50_000)
