"""YAML with places: what is a number, what stays text, and what is refused."""

from __future__ import annotations

import pytest

from streams.playbook.yaml_document import Mark, read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("true", True),
        ("~", None),
        ("", None),
        ("on", "on"),
        ("yes", "yes"),
        ("1e5", "1e5"),
        ("007", "007"),
        ("12:30:00", "12:30:00"),
        ("2026-01-01", "2026-01-01"),
        ("1_000", "1_000"),
        ("'5'", "5"),
        ("!!str 5", "5"),
    ],
)
def test_only_what_looks_like_a_number_is_one(text: str, value: object) -> None:
    found = read(f"a: {text}\n").value["a"]
    assert found == value
    assert type(found) is type(value)


def test_every_node_and_key_knows_its_place() -> None:
    document = read("a:\n  - b: 1\n    c: {d: 2}\n")
    assert document.marks["a", 0, "c", "d"] == Mark(3, 12)
    assert document.keys["a", 0, "c", "d"] == Mark(3, 9)


def test_aliases_and_merges_are_written_out() -> None:
    document = read("a: &x {b: 1, c: 2}\nd: *x\ne: {<<: *x, c: 3}\n")
    assert document.value["d"] == {"b": 1, "c": 2}
    assert document.value["e"] == {"b": 1, "c": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "not YAML"),
        ("a: 1\nb: 2\na: 3\n", "3:1: error: a: 'a' is there twice"),
        ("a: &x [*x]", "an alias that contains itself"),
        ("a: !secret x", "the tag '!secret'"),
        ("a: 1\n---\nb: 2", "not YAML"),
        ("? [a]\n: 1", "a key is a text"),
    ],
)
def test_what_cannot_be_read_is_a_problem(text: str, message: str) -> None:
    assert any(message in str(problem) for problem in read(text).problems)


def test_a_text_that_grows_without_end_is_refused() -> None:
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert any("nodes" in str(problem) for problem in read("\n".join(lines)).problems)
