"""Failures of a process on the real broker: it ends with the error and commits nothing more."""

from __future__ import annotations

import time

import pytest

from tests.support.kafka.reader_program import reader_program
from tests.support.waiting import until

pytestmark = pytest.mark.stack
# Longer than a commit and the watch over the driver take.
CLOSING_S = 0.4
HANGS_S = 8.0


@pytest.mark.parametrize(
    "failure", ["the handler raises", "a timer raises", "a background task raises"]
)
async def test_an_exception_of_a_role_ends_its_process_at_once_and_its_record_is_not_committed(
    topic, tmp_path, failure
):
    async with reader_program(topic, tmp_path, failure=failure) as reader:
        await topic.write("a", "b")
        await until(lambda: topic.has_committed(2, 0))
        await topic.write("fail")
        began = time.monotonic()
        assert await reader.exit_code(within_s=HANGS_S) == 1
        assert time.monotonic() - began < 2.0
        assert reader.stderr.startswith("Traceback (most recent call last):")
        assert reader.stderr.endswith("ZeroDivisionError: a bug\n")
        assert reader.handled == [(0, 0, "a"), (0, 1, "b"), (0, 2, "fail")]
        assert await topic.has_committed(2, 0)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        ("a service of Faust fails", "ZeroDivisionError: a bug"),
        ("the fetcher raises", "DriverFailed"),
        ("the fetcher ends", "DriverFailed"),
        ("the coordinator raises", "ZeroDivisionError('a bug')"),
        ("the coordinator is cancelled", "DriverFailed"),
        ("membership is refused", "GroupAuthorizationFailedError"),
    ],
)
async def test_a_failure_of_the_driver_ends_the_process(topic, tmp_path, failure, error):
    async with reader_program(topic, tmp_path, failure=failure) as reader:
        await topic.write("a", "b")
        await until(lambda: topic.has_committed(2, 0))
        await topic.write("fail")
        assert await reader.exit_code(within_s=HANGS_S) == 1
        assert error in reader.stderr
        assert await topic.has_committed(2, 0)


async def test_a_member_that_is_refused_while_its_partitions_are_paused_ends(topic, tmp_path):
    options = {"failure": "membership is refused", "max_span": 1}
    async with reader_program(topic, tmp_path, **options) as reader:
        await topic.write("fail", partition=1)
        await topic.write("fail")
        await until(lambda: len(reader.handled) == 2)
        assert await reader.exit_code(within_s=HANGS_S) == 1
        assert "GroupAuthorizationFailedError" in reader.stderr


@pytest.mark.parametrize(
    "failure", ["the handler raises", "a service of Faust fails", "the fetcher ends"]
)
async def test_acknowledgements_after_a_failure_are_not_committed(topic, tmp_path, failure):
    async with reader_program(topic, tmp_path, failure=failure, closing_s=CLOSING_S) as reader:
        await topic.write("a")
        await until(lambda: topic.has_committed(1, 0))
        await topic.write("fail")
        assert await reader.exit_code(within_s=HANGS_S) == 1
        assert await topic.has_committed(1, 0)
    async with reader_program(topic, tmp_path) as reader:
        await until(lambda: reader.handled[-1] == (0, 1, "fail") and len(reader.handled) == 3)


async def test_the_traceback_of_the_driver_is_the_cause_of_the_failure(topic, tmp_path):
    async with reader_program(topic, tmp_path, failure="the fetcher raises") as reader:
        await topic.write("fail")
        assert await reader.exit_code(within_s=HANGS_S) == 1
        assert "ZeroDivisionError: a bug" in reader.stderr
