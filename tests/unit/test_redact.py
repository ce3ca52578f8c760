"""What must not be written is not, wherever it is quoted."""

from __future__ import annotations

import logging
from base64 import b64encode

import pytest

from streams.redact import Formatter, InUse, in_use

DSN = "postgresql://ada:p%40ss-c4nary@db.local:5432/care"


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
    told = using(dsn=DSN).text(text)
    assert "c4nary" not in told
    assert b64encode(b"ada:p@ss-c4nary").decode() not in told


def test_who_and_where_stay_readable():
    told = using(host="db.local", user="ada", password="c4nary").text("ada at db.local: c4nary")
    assert told == "ada at db.local: ***"


def test_a_login_that_nobody_declared_is_masked_by_its_looks():
    assert "c4nary" not in InUse().text("cannot reach postgresql://u:c4nary@h/db")
    assert "c4nary" not in InUse().text("connection failed: host=h password=c4nary")


def test_values_lose_the_secret_and_nothing_else():
    use = using(token='c4"nary')
    assert use.value({"a": ['x c4"nary y', 1, None], 'c4"nary': {}}) == {
        "a": ["x *** y", 1, None],
        "***": {},
    }
    clean = {"a": [1, "b"]}
    assert use.value(clean) is clean


def test_an_address_without_a_login_is_no_secret():
    assert using(url="http://api.local/v1").text("http://api.local/v1 is down") == (
        "http://api.local/v1 is down"
    )


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
