"""A trigger record is understood, or every reason is given why not."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams.kafka.feed.port import Record, TopicPartition
from streams.trigger.core import MAX_REASON_CHARS, plain
from streams.trigger.record import BadTrigger, Request, read_json, understand

PARTITION = TopicPartition("noetl.triggers", 3)


def record(body: Any, key: bytes | None = None, *headers: tuple[str, bytes]) -> Record:
    value = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
    return Record(PARTITION, 7, key, value, headers, 0)


def read(body: Any, key: bytes | None = None, *headers: tuple[str, bytes]) -> Request:
    made = record(body, key, *headers)
    return understand(made, read_json(made.value), tenant="home", organization="care")


def problems(body: Any, key: bytes | None = None, *headers: tuple[str, bytes]) -> tuple[str, ...]:
    with pytest.raises(BadTrigger) as caught:
        read(body, key, *headers)
    return caught.value.problems


def test_a_path_is_enough() -> None:
    assert read({"path": "examples/hello"}) == Request(
        path="examples/hello", tenant="home", organization="care", workload={}
    )


def test_every_field_is_taken_as_it_is() -> None:
    asked = {
        "path": "examples/hello",
        "version": 3,
        "workload": {"a": "1e5", "b": [None, True]},
        "key": "order-9",
        "tenant": "acme",
        "organization": "north",
        "reply_to": "replies",
        "correlation_id": "c-1",
    }
    assert read(asked) == Request(**asked)


def test_null_means_not_given() -> None:
    found = read({"path": "p", "version": None, "workload": None, "key": None, "tenant": None})
    assert found == Request(path="p", tenant="home", organization="care", workload={})


def test_the_bodys_key_goes_before_the_headers_and_that_before_kafkas() -> None:
    header = ("idempotency-key", b"of the header")
    assert read({"path": "p", "key": "own"}, b"kafka", header).key == "own"
    assert read({"path": "p"}, b"kafka", header).key == "of the header"
    assert read({"path": "p"}, b"kafka").key == "kafka"
    assert read({"path": "p"}, b"").key is None


def test_a_key_that_is_no_text_is_a_problem_only_where_it_is_needed() -> None:
    assert problems({"path": "p"}, b"\xff\xfe") == (
        "the record's Kafka key: is not UTF-8, so it cannot be an idempotency key",
    )
    assert read({"path": "p", "key": "own"}, b"\xff\xfe").key == "own"
    assert len(problems({"path": "p"}, b"a\x00b")) == 1
    assert len(problems({"path": "p"}, b"a" * 513)) == 1


def test_every_problem_is_named_at_once() -> None:
    found = problems(
        {
            "workload": [1],
            "version": "2",
            "tenant": "",
            "reply_to": "noetl.triggers",
            "colour": "red",
        },
        b"\xff",
    )
    assert [problem.split(":")[0] for problem in found] == [
        "colour", "path", "tenant", "version", "workload", "reply_to", "the record's Kafka key",
    ]  # fmt: skip


def test_a_bad_record_still_says_whose_it_is() -> None:
    with pytest.raises(BadTrigger) as caught:
        read({"tenant": "acme", "organization": 5})
    assert (caught.value.tenant, caught.value.organization) == ("acme", "care")


@pytest.mark.parametrize("version", [0, -1, True, 1.5, "1", 2**31])
def test_a_version_is_a_positive_whole_number(version: Any) -> None:
    assert problems({"path": "p", "version": version})[0].startswith("version: ")


@pytest.mark.parametrize("topic", ["noetl.triggers", "noetl.x", "a b", "..", "ä", "x" * 250])
def test_a_reply_goes_to_a_topic_that_is_not_ours(topic: str) -> None:
    assert any(one.startswith("reply_to: ") for one in problems({"path": "p", "reply_to": topic}))


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'"p"', b"7", b"\xff"])
def test_what_is_no_json_object_is_said_so(value: bytes | None) -> None:
    with pytest.raises(ValueError, match=r"the (value|record)"):
        read_json(value)


def test_a_reason_is_cut_and_can_be_stored_anywhere() -> None:
    assert plain("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    assert len(plain("x" * 9000)) == MAX_REASON_CHARS
