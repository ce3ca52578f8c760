"""Connection strings that are none are refused at once, and not quoted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from streams.worker.errors import BadConfig, SaveFailed
from streams.worker.port import Fence, Saved
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres.dsn import check_dsn
from streams.worker.tools.postgres.tool import PostgresTool
from tests.support.worker.postgres_tool import calls, sql
from tests.support.worker.sinks import call


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:c4nary@127.0.0.1:5432/db?sslmode=disable",
        "postgres://127.0.0.1/db",
        "postgresql:///db?host=/tmp/socket",
        "postgresql://u:p%40w@[::1]:5432/db",
        "postgresql://a:5432,b:5433/db",
        "postgresql://[::1],b/db",
        "postgresql://u:a:b@h/db",
        "postgresql://u:p%23%2F%3F@h/db",
        "postgresql://h:5432/db?user=a@b",
        "postgresql://u:p@h/db@x#y",
        "postgresql://",
    ],
)
def test_what_can_be_used_passes(dsn: str) -> None:
    check_dsn(dsn)


@pytest.mark.parametrize(
    "dsn",
    [
        "c4nary",
        "host=h password=c4nary",
        "mysql://c4nary@h",
        "postgresql://u:c4nary@h:x/db",
        "postgresql://u:c4nary@h:99999/db",
        "postgresql://u:c4nary@h:0/db",
    ],
)
def test_what_is_none_is_refused_without_being_quoted(dsn: str) -> None:
    with pytest.raises(BadConfig) as refused:
        check_dsn(dsn)
    assert "c4nary" not in str(refused.value)


@pytest.mark.parametrize("password", ["c4nary#x", "c4nary/x", "c4nary?x", "12#c4nary", "x@c4nary"])
def test_a_password_that_is_not_escaped_is_refused_with_what_to_do(password: str) -> None:
    with pytest.raises(BadConfig, match="percent-encode") as refused:
        check_dsn(f"postgresql://u:{password}@h:5432/db")
    assert "c4nary" not in str(refused.value)


@pytest.fixture(
    params=[
        "postgresql://u:c4nary#x@127.0.0.1:1/db",
        "postgresql://u:c4nary[x@127.0.0.1:1/db",
        "postgresql://u:c4nary@127.0.0.1:1/db?sslmode=c",
        "postgresql://u:c4nary@127.0.0.1:99999/db",
        "postgresql://u:c4nary@/db?host=127.0.0.1&port=99999",
        "postgresql://u:p@/db?host=127.0.0.1&port=c4nary",
        "postgresql://u:p@127.0.0.1:1/db?c4nary",
    ]
)
async def tool(request: pytest.FixtureRequest) -> AsyncIterator[PostgresTool]:
    credentials = ConfiguredCredentials({"pg": {"dsn": request.param}}, {})
    made = PostgresTool(credentials, deployment="test")
    yield made
    await made.close()


async def test_a_connection_string_that_never_works_is_no_outage_and_no_value(
    tool: PostgresTool,
) -> None:
    outcome = await tool.run(sql("SELECT 1"), call())
    assert outcome.error is not None
    assert outcome.error["kind"] == "pg.config"
    assert "c4nary" not in str(outcome.error)


async def test_a_frame_that_cannot_be_saved_for_its_connection_string_says_so(
    tool: PostgresTool,
) -> None:
    fence = Fence(deployment="test", stage_id=7, frame_id=8, task="save")
    batch = calls((1, "a"))
    with pytest.raises(SaveFailed, match="connection string") as refused:
        await tool.find(batch[0], [fence])
    assert "c4nary" not in str(refused.value)
    with pytest.raises(SaveFailed, match="connection string") as refused:
        await tool.save([(fence, batch)], Saved(row_count=1))
    assert "c4nary" not in str(refused.value)
