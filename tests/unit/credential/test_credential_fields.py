"""What may be a credential, and what a bad one's message must not say."""

from __future__ import annotations

import pytest

from streams.credential.errors import BadCredential
from streams.credential.fields import check_fields, check_name, fields_of


def test_an_object_a_connection_string_and_a_token():
    assert fields_of('{"host": "h", "port": 5432}', "postgres", "x") == {
        "host": "h",
        "port": "5432",
    }
    assert fields_of("postgresql://h/db\n", "postgres", "x") == {"dsn": "postgresql://h/db"}
    assert fields_of("abc", "http", "x") == {"token": "abc"}


@pytest.mark.parametrize(
    "text", ["", '{"dsn": c4nary', "c4nary\nc4nary", '{"a": ["c4nary"]}', "{}"]
)
def test_what_cannot_be_used_is_refused_without_quoting_it(text: str):
    with pytest.raises(BadCredential) as caught:
        fields_of(text, "postgres", "standard input")
    assert "c4nary" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "..", "a/b", "env:x", "a b", "ü", "x" * 200, "a\0"])
def test_odd_names_are_refused(name: str):
    with pytest.raises(BadCredential):
        check_name(name)


def test_fields_are_bounded():
    with pytest.raises(BadCredential, match="bytes in total"):
        check_fields({"dsn": "x" * 70_000})
    with pytest.raises(BadCredential, match="'a'"):
        check_fields({"a": True})
    with pytest.raises(BadCredential, match="'a' is not UTF-8"):
        check_fields({"a": "c4nary\udcff"})
