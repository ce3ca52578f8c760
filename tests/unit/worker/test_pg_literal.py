"""What the postgres tool makes of SQL in NoETL's spelling, whose templates are text already."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from streams.worker.errors import BadConfig
from streams.worker.tools.postgres.literal import (
    changes_session,
    command_texts,
    groups,
    has_no_rows,
    is_bracket,
)
from streams.worker.tools.postgres.statement import literal_statements

SEVERAL = """
-- a facility's queue; with a comment
CREATE TABLE t (v jsonb); /* outer /* inner; */ it's */
INSERT INTO t VALUES ('{"a":1}'::jsonb), ($q$it's; :b$q$), (E'\\';');
DO $$ BEGIN RAISE NOTICE '%; %', 1, 2; END $$;
SELECT a FROM x WHERE b LIKE '50%' AND c = 'it''s; :d' AND "e;f" <> :g
"""


def test_statements_are_split_outside_of_quotes_and_comments() -> None:
    found = [one.text.strip() for one in literal_statements(SEVERAL)]
    assert [one.split()[0] for one in found] == ["--", "/*", "DO", "SELECT"]
    assert found[1].endswith("E'\\';')")
    assert found[3].endswith("<> :g")


def test_a_colon_and_a_name_are_never_a_placeholder() -> None:
    [statement] = literal_statements("SELECT a[1:n], :x, '{\"a\":b}'::jsonb")
    assert (statement.names, statement.sql()) == ((), statement.text)


def places(*texts: str) -> list[tuple[bool, int]]:
    return [(one.in_transaction, len(one.statements)) for one in groups(texts)]


def test_statements_that_need_no_transaction_around_them_are_set_apart() -> None:
    assert places("CREATE TABLE t (a int); INSERT INTO t VALUES (1)") == [(True, 2)]
    assert places("SELECT 1", "SELECT 2; SELECT 3") == [(True, 3)]
    assert places("INSERT INTO t VALUES (1); VACUUM t; SELECT 1") == [
        (True, 1),
        (False, 1),
        (True, 1),
    ]
    assert places("BEGIN; DELETE FROM t; ROLLBACK") == [(False, 3)]
    assert places("SAVEPOINT a; DELETE FROM t; ROLLBACK TO a") == [(True, 3)]
    assert places("-- only a comment") == []


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DATABASE a",
        "drop database if exists a",
        "VACUUM (ANALYZE) t",
        "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)",
        "DROP INDEX CONCURRENTLY i",
        "REINDEX (VERBOSE) DATABASE d",
        "ALTER SYSTEM SET a = 1",
        "CREATE TABLESPACE s LOCATION '/x'",
    ],
)
def test_postgres_refuses_these_in_a_transaction(text: str) -> None:
    assert places(text) == [(False, 1)]


@pytest.mark.parametrize(
    "text", ["CREATE INDEX i ON t (a)", "REFRESH MATERIALIZED VIEW CONCURRENTLY v", "ANALYZE t"]
)
def test_and_accepts_these(text: str) -> None:
    assert places(text) == [(True, 1)]


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("INSERT INTO t VALUES (1) RETURNING a", False),
        ("WITH x AS (SELECT 1) UPDATE t SET a = 1", True),
        ("WITH x AS (DELETE FROM t RETURNING a) INSERT INTO u SELECT * FROM x", True),
        ("WITH x AS (SELECT 1) UPDATE t SET a = 1 RETURNING a", False),
        ("WITH x AS (INSERT INTO t VALUES (1)) SELECT 1", False),
        ("SELECT 1", False),
        ("TRUNCATE t", True),
        ("EXECUTE p", False),
    ],
)
def test_statements_without_rows_are_known_by_their_words(text: str, without: bool) -> None:
    [statement] = literal_statements(text)
    assert has_no_rows(statement) is without


def test_a_session_is_reset_after_statements_that_may_change_it() -> None:
    found = literal_statements("SET a = 1; SELECT set_config('a', 'b', false); SELECT 1; BEGIN")
    assert [changes_session(one) for one in found] == [True, True, False, False]
    assert [is_bracket(one) for one in found] == [False, False, False, True]


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("config", "texts"),
    [
        ({"command": "a"}, ["a"]),
        ({"query": "a"}, ["a"]),
        ({"commands": ["a", "b"]}, ["a", "b"]),
        ({"cmds": "a; b"}, ["a; b"]),
        ({"command_b64": encoded("SELECT 'ü'")}, ["SELECT 'ü'"]),
        ({"commands_b64": [encoded("a"), encoded("b")]}, ["a", "b"]),
    ],
)
def test_a_command_has_many_names(config: dict[str, Any], texts: list[str]) -> None:
    assert command_texts(config) == texts


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "'command' is missing; give one of command, commands"),
        ({"command": "a", "query": "b"}, "'command' and 'query' are given"),
        ({"command": 5}, "'command' must be text or a list of texts, not int"),
        ({"command_b64": "?"}, "'command_b64' is not base64"),
    ],
)
def test_a_command_that_is_none_is_refused(config: dict[str, Any], why: str) -> None:
    with pytest.raises(BadConfig, match=why):
        command_texts(config)
