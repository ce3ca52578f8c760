"""What must not be written is not, wherever it is quoted; and data stays what it is."""

from __future__ import annotations

import html
import json
import logging
import re
from base64 import b64encode
from urllib.parse import quote, quote_plus

import pytest

from streams.redact import Formatter, InUse, in_use
from streams.redact.fields import OPEN

DSN = "postgresql://ada:p%40ss-c4nary@db.local:5432/care"
HOSTILE = "c4n\"a\\r/y<&'+ä€\n😀 x"


def using(**fields: str) -> InUse:
    made = InUse()
    made.add("one", fields)
    return made


@pytest.mark.parametrize(
    "text",
    [
        f"cannot connect to {DSN}",
        "password p@ss-c4nary is wrong",
        "password p%40ss-c4nary is wrong",
        "Basic " + b64encode(b"ada:p@ss-c4nary").decode(),
    ],
)
def test_a_connection_string_in_all_its_forms(text: str):
    redacted = using(dsn=DSN).text(text)
    assert "c4nary" not in redacted
    assert b64encode(b"ada:p@ss-c4nary").decode() not in redacted


IN_JSON = json.dumps(HOSTILE, ensure_ascii=False)


@pytest.mark.parametrize(
    "quoted",
    [
        HOSTILE,
        json.dumps(HOSTILE),
        IN_JSON,
        json.dumps(HOSTILE).replace("/", "\\/"),
        re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda found: found[0].upper(), json.dumps(HOSTILE)),
        IN_JSON.replace("<", "\\u003c").replace("&", "\\u0026"),
        json.dumps(json.dumps(HOSTILE)),
        repr(HOSTILE),
        quote(HOSTILE, safe=""),
        quote(HOSTILE),
        quote_plus(HOSTILE),
        quote(HOSTILE, safe="").lower(),
        html.escape(HOSTILE),
        HOSTILE.encode().decode("latin-1"),
    ],
)
def test_a_secret_is_found_however_it_is_escaped(quoted: str):
    use = using(token=HOSTILE)
    assert "c4n" not in use.text(f"the server says {quoted}: no")
    assert "c4n" not in use.value({"body": [quoted]})["body"][0]


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"username": "sk_live_c4nary", "password": ""}, "sk_live_c4nary"),
        ({"username": "sk_live_c4nary"}, b64encode(b"sk_live_c4nary:").decode()),
        ({"dsn": "postgresql://h/db?user=u&password=c4nary-1"}, "c4nary-1"),
        ({"url": "redis://:c4nary-1@h:6379/0"}, "c4nary-1"),
        ({"endpoint": "https://c4nary-1@h/x"}, "c4nary-1"),
        ({"key": json.dumps({"type": "x", "private_key": "--c4\nnary--"})}, "--c4\\nnary--"),
        ({"pin": "1234567890123456"}, "1234567890123456"),
        ({"token": "tok://c4nary-1234"}, "tok://c4nary-1234"),
        ({"user": "ada", "password": "x7://c4nary-1"}, "x7://c4nary-1"),
        ({"dsn": "postgresql://u:c4n#ary-12@h:5432/x"}, "c4n#ary-12"),
        ({"dsn": "postgresql://u:c4n/ary-12@h:5432/x"}, "c4n/ary-12"),
        ({"dsn": "postgresql://u:c4n?ary-12@h:5432/x"}, "c4n?ary-12"),
        ({"dsn": "postgresql://u:12#c4nary@h:5432/x"}, "12#c4nary"),
        ({"dsn": "postgresql://u:12/c4nary@h:5432/x"}, "12/c4nary"),
        ({"dsn": "postgresql://u:c4n[ary-1@h:5432/x"}, "c4n[ary-1"),
        ({"dsn": "postgresql://u:c4nary-12#xY@h:5432/x"}, "c4nary-12"),
        ({"dsn": "host=h password=c4nary-12 dbname=x"}, "c4nary-12"),
        ({"dsn": "host=h password='c4 nary\\'12' dbname=x"}, "c4 nary'12"),
        ({"dsn": "Driver=x;Server=y;Pwd=c4 nary-12;Db=z"}, "c4 nary-12"),
        ({"dsn": "Server=y;Password={c4;nary-12};Db=z"}, "c4;nary-12"),
        ({"url": "jdbc:postgresql://h/db?user=u&password=c4nary-12"}, "c4nary-12"),
        ({"url": "jdbc:sqlserver://h:1433;user=u;password=c4nary-12;"}, "c4nary-12"),
        ({"sas": "sv=2024-01-01&sp=r&sig=c4nary%2F12"}, "c4nary%2F12"),
        ({"connection": "BlobEndpoint=https://h/;AccountKey=c4nary-1=="}, "c4nary-1=="),
        ({"key": json.dumps({"web": {"client_secret": "c4nary-12"}})}, "c4nary-12"),
        ({"keys": json.dumps([["c4nary-12"]])}, "c4nary-12"),
        ({"header": "Authorization", "value": "Bearer c4nary-12"}, "c4nary-12"),
        ({"header": "Authorization", "value": "GenieKey c4nary-12"}, "c4nary-12"),
        (
            {"authorization": "Basic " + b64encode(b"u:c4nary-12").decode()},
            "c4nary-12",
        ),
    ],
)
def test_what_is_secret_is_found_inside_a_field(fields: dict[str, str], secret: str):
    use = InUse()
    use.add("one", fields)
    assert secret not in use.text(f"x {secret} y")
    assert use.value({"a": [f"x {secret} y"]}) == {"a": ["x *** y"]}


def test_a_number_that_is_the_secret_is_one():
    assert using(pin="1234567890123456").value({"a": 1234567890123456, "b": 1}) == {
        "a": "***",
        "b": 1,
    }


def test_who_and_where_stay_readable():
    redacted = using(host="db.local", user="ada", password="c4nary").text("ada at db.local: c4nary")
    assert redacted == "ada at db.local: ***"


@pytest.mark.parametrize("name", sorted(OPEN))
def test_a_field_that_is_no_secret_changes_neither_messages_nor_data(name: str):
    use = using(**{name: "an-ordinary-word-1", "password": "c4nary-42"})
    assert use.text("an-ordinary-word-1 is down") == "an-ordinary-word-1 is down"
    row = {"an-ordinary-word-1": "an-ordinary-word-1"}
    assert use.value(row) is row


@pytest.mark.parametrize(
    "weak", ["demo", "true", "secret", "password", "PRODUCTION", "Wednesday", "20240131", "a-b-c"]
)
def test_a_weak_secret_goes_from_messages_but_changes_no_data(weak: str):
    use = using(password=weak)
    assert use.text(f"{weak} is wrong") == "*** is wrong"
    row = {"who": f"{weak} user", weak: [weak, f"/{weak}/"]}
    assert use.value(row) is row
    error = {"kind": weak, "message": f"{weak} is wrong", "more": [weak], "status": 401}
    fields = {"kind": weak, "message": "*** is wrong", "more": ["***"], "status": 401}
    assert use.error(error) == fields


@pytest.mark.parametrize("strong", ["pw-12345", "hGkLmNbV", "correcthorsebattery", "x1234567"])
def test_a_secret_that_stands_out_goes_from_data_and_its_keys(strong: str):
    row = {"who": f"{strong} user", strong: [strong]}
    assert using(password=strong).value(row) == {"who": "*** user", "***": ["***"]}


def test_a_secret_that_was_changed_is_hidden_as_well_as_the_one_before():
    use = using(token="c4nary-old-1")
    use.add("one", {"token": "c4nary-new-2"})
    assert use.text("c4nary-old-1, c4nary-new-2") == "***, ***"
    assert use.value({"a": "c4nary-new-2"}) == {"a": "***"}


def test_a_login_that_nobody_declared_is_masked_by_its_looks():
    assert "c4nary" not in InUse().text("cannot reach postgresql://u:c4nary@h/db")
    assert "c4nary" not in InUse().text("connection failed: host=h password=c4nary")


def test_values_lose_the_secret_and_nothing_else():
    use = using(token='c4"nary-1')
    assert use.value({"a": ['x c4"nary-1 y', 1, None], 'c4"nary-1': {}}) == {
        "a": ["x *** y", 1, None],
        "***": {},
    }
    clean = {"a": [1, "b"]}
    assert use.value(clean) is clean


@pytest.mark.parametrize("odd", [{"n": 2**70}, {1: "a"}, "\ud800"])
def test_what_is_no_json_is_looked_through_all_the_same(odd: object):
    assert using(token="c4nary-42").value([odd, "c4nary-42"]) == [odd, "***"]


def test_an_address_without_a_login_is_no_secret():
    assert using(url="http://api.local/v1").text("http://api.local/v1 is down") == (
        "http://api.local/v1 is down"
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"url": "redis://cache:6379/0?client=a@b"}, "cache:6379 is down, database 0"),
        ({"url": "http://api.local:8080/users/a@b"}, "port 8080/users/a is down"),
        ({"dsn": "postgresql://[::1]:5432/db?user=a@b"}, "[::1]:5432 is down"),
        ({"url": "mongodb://h1:27017,h2:27017/db?app=a@b"}, "h1:27017,h2:27017 is down"),
        ({"dsn": "host=db.local user=ada password=c4nary-12"}, "ada cannot reach db.local"),
        ({"dsn": "Server=db.local;Uid=ada;Pwd=c4nary-12"}, "ada cannot reach db.local"),
        ({"dsn": "host=db.local passive=true"}, "true"),
        (
            {"key": json.dumps({"web": {"auth_uri": "https://a.local/o", "scopes": ["read"]}})},
            "https://a.local/o gave nobody the right to read",
        ),
    ],
)
def test_who_and_where_stay_readable_inside_a_field(fields: dict[str, str], text: str):
    use = InUse()
    use.add("one", fields)
    assert use.text(text) == text
    row = {"a": [text]}
    assert use.value(row) is row


@pytest.mark.parametrize(
    "fields",
    [
        {"dsn": "host=h password=secret"},
        {"dsn": "Server=h;Pwd=Wednesday"},
        {"key": json.dumps({"web": {"client_secret": "password"}})},
        {"header": "Authorization", "value": "Bearer demo"},
        {"dsn": "postgresql://u:production/#demo@h/x"},
    ],
)
def test_a_weak_secret_inside_a_field_changes_no_data(fields: dict[str, str]):
    use = InUse()
    use.add("one", fields)
    row = {"secret": "demo password", "a": ["Wednesday", "production", "demo"]}
    assert use.value(row) is row


def test_log_lines_and_tracebacks_are_written_without_secrets():
    with in_use() as use:
        use.add("one", {"token": "c4nary"})
        try:
            raise ValueError("c4nary is wrong")
        except ValueError as error:
            record = logging.LogRecord(
                "n",
                logging.ERROR,
                "f",
                1,
                "asked with %s",
                ("c4nary",),
                (ValueError, error, error.__traceback__),
            )
        line = Formatter("%(message)s").format(record)
    assert "ValueError: *** is wrong" in line
    assert "c4nary" not in line
