"""What the postgres tool makes of SQL text."""

from __future__ import annotations

from typing import Any

import pytest

from streams.worker.tools.postgres.insert import insert_of
from streams.worker.tools.postgres.reference import reference_of
from streams.worker.tools.postgres.statement import statements
from streams.worker.tools.sql_answer import SqlAnswer


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT :a, :b, :a", "SELECT $1, $2, $1"),
        ("SELECT ':a' || :a", "SELECT ':a' || $1"),
        ("SELECT :a::text", "SELECT $1::text"),
        ('SELECT ":a", :a', 'SELECT ":a", $1'),
        ("SELECT $$:a$$, $x$ :a $x$, :a", "SELECT $$:a$$, $x$ :a $x$, $1"),
        ("SELECT E'\\':a', :a", "SELECT E'\\':a', $1"),
        ("SELECT 'it''s :a', :a", "SELECT 'it''s :a', $1"),
        ("SELECT :a -- :b\n/* :c; */", "SELECT $1 -- :b\n/* :c; */"),
        ("SELECT x[1:2], f(a := :a)", "SELECT x[1:2], f(a := $1)"),
    ],
)
def test_placeholders_are_found_where_they_are_meant(text: str, sql: str) -> None:
    [statement] = statements(text)
    assert statement.sql() == sql


def test_statements_are_separated_outside_of_quotes_only() -> None:
    texts = [one.text.strip() for one in statements("A ';'; ;B $$;$$ -- ;\n; -- nothing\n")]
    assert texts == ["A ';'", "B $$;$$ -- ;"]


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("SELECT 1", False),
        ("-- insert\nselect 'insert'", False),
        ("INSERT INTO t VALUES (1)", True),
        ("  /* x */ update t set a = 1", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", False),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", True),
        ("CREATE TABLE t (a int)", False),
        ("DO $$ BEGIN END $$", True),
        ('SELECT "update" FROM t', False),
    ],
)
def test_what_changes_rows_is_recognized(text: str, writes: bool) -> None:
    assert statements(text)[0].writes is writes


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("INSERT INTO a.t (x) VALUES (1)", "a.t"),
        ("-- update wrong\nINSERT INTO t VALUES (1)", "t"),
        ("INSERT /* into no */ INTO -- update no\n t VALUES (1)", "t"),
        ("WITH m AS (DELETE FROM a RETURNING *) INSERT INTO b SELECT * FROM m", "b"),
        ("WITH update AS (SELECT 1) INSERT INTO b SELECT * FROM update", "b"),
        ("WITH m AS (DELETE FROM a RETURNING *) SELECT * FROM m FOR UPDATE", "a"),
        ("INSERT INTO ünï VALUES (1)", "ünï"),
        ('UPDATE ONLY "My Table" SET a = 1', "My Table"),
        ("DELETE FROM a . b WHERE x = 'update c'", "a.b"),
        ("MERGE INTO m USING s ON true WHEN MATCHED THEN DELETE", "m"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", "t"),
        ("SELECT 'insert into t'", None),
        ("DO $$ BEGIN INSERT INTO a VALUES (1); END $$", None),
    ],
)
def test_a_write_names_the_table_of_its_own_verb(text: str, key: str | None) -> None:
    [statement] = statements(text)
    expected = {} if key is None else {"store": "db", "key": key, "range": "rows:1"}
    assert reference_of(statement, SqlAnswer([], 1)) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], "rows:7"),
        ([{"id": 5, "v": "b"}, {"id": 2, "v": "a"}], "id:2-5"),
        ([{"v": "b", "id": 5}, {"v": "a", "id": 2}], "id:2-5"),
        ([{"n": 9, "ID": "x"}, {"n": 8, "ID": "y"}], "ID:x-y"),
        (
            [{"v": "b", "at": None, "patient": 5}, {"v": "a", "at": None, "patient": 2}],
            "patient:2-5",
        ),
        ([{"v": "b", "ok": True}, {"v": "a", "ok": False}], "v:a-b"),
        ([{"id": None, "n": 1}, {"id": 3, "n": 2}], "n:1-2"),
        ([{"v": 1.5}], "rows:7"),
    ],
)
def test_a_range_is_that_of_the_column_that_tells_rows_apart(rows: Any, expected: str) -> None:
    [statement] = statements("INSERT INTO t SELECT 1 RETURNING *")
    assert reference_of(statement, SqlAnswer(rows, 7))["range"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t (a) VALUES (:a), (:b)",
        "INSERT INTO t (a) VALUES (:a) RETURNING a",
        "INSERT INTO t (a) VALUES (:a) ON CONFLICT (a) DO UPDATE SET a = :b",
        "INSERT INTO t (a, b) VALUES (:a, DEFAULT)",
        "INSERT INTO t (a) SELECT :a",
        "INSERT INTO t (a) VALUES (1)",
        "UPDATE t SET a = :a",
    ],
)
def test_other_shapes_are_not_taken_for_a_batch(text: str) -> None:
    assert insert_of(statements(text)[0]) is None


def test_an_insert_becomes_one_statement_for_all_rows() -> None:
    text = "INSERT INTO t (a, b, c) VALUES (:x, upper(:y), now()) ON CONFLICT DO NOTHING"
    insert = insert_of(statements(text)[0])
    assert insert is not None
    assert insert.many(["integer", "text"]) == (
        'INSERT INTO t (a, b, c)  SELECT (u."x"::integer), upper((u."y"::text)), now() '
        'FROM json_to_recordset($1::text::json) AS u("x" text, "y" text)  ON CONFLICT DO NOTHING'
    )
