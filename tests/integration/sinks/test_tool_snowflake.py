"""The snowflake tool: its own client, answered by fakesnow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from streams.playbook.spelling import Spelling
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.snowflake import SnowflakeTool
from tests.support.worker.tool_calls import CALL

LOGIN = {"sf_account": "a", "sf_user": "u", "sf_password": "p", "database": "db", "schema": "s"}


@pytest.fixture
def snow() -> Iterator[Any]:
    import fakesnow

    with fakesnow.patch():
        yield


async def run(**config: Any) -> Outcome:
    tool = SnowflakeTool(ConfiguredCredentials({"snow": LOGIN, "other": {"dsn": "x"}}, {}))
    return await tool.run(config, replace(CALL, spelling=Spelling.NOETL))


@pytest.mark.usefixtures("snow")
async def test_the_last_statement_answers() -> None:
    command = "CREATE TABLE t (id INT, d NUMBER(5,2)); INSERT INTO t VALUES (1, 1.5), (2, 2); "
    outcome = await run(auth="snow", command=command + "SELECT id, d FROM t ORDER BY id;")
    assert outcome.data == {
        "status": "success",
        "statement_count": 3,
        "columns": ["ID", "D"],
        "rows": [{"ID": 1, "D": "1.50"}, {"ID": 2, "D": "2.00"}],
        "row_count": 2,
    }


@pytest.mark.usefixtures("snow")
async def test_errors_are_named() -> None:
    for config, kind in (
        ({"auth": "snow", "query": "SELECT * FROM nowhere"}, "snowflake.sql"),
        ({"auth": "other", "query": "SELECT 1"}, "snowflake.config"),
        ({"auth": "unknown", "query": "SELECT 1"}, "snowflake.config"),
    ):
        outcome = await run(**config)
        assert outcome.error is not None
        assert outcome.error["kind"] == kind
