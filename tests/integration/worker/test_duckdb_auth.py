"""DuckDB's `auth` with its real extensions, where this machine has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import asyncpg
import duckdb
import pytest

from streams.playbook.spelling import Spelling
from streams.settings import Settings
from streams.worker.errors import BadConfig
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.duckdb import DuckdbTool
from streams.worker.tools.duckdb_extensions import load_extension
from tests.support.log.databases import dsn
from tests.support.payload.buckets import Bucket, open_bucket
from tests.support.worker.tool_calls import CALL

NOETL = replace(CALL, spelling=Spelling.NOETL)


def needs(extension: str) -> None:
    with duckdb.connect() as session:
        try:
            load_extension(session, extension)
        except BadConfig as error:
            pytest.skip(str(error))


@pytest.fixture
async def bucket(tmp_path: Path) -> AsyncIterator[Bucket]:
    async with open_bucket(tmp_path / "served") as opened:
        (opened.folder / "rows.csv").write_text("a,b\n1,x\n2,y\n")
        yield opened


async def run(login: dict[str, str], tool: str, folder: Path, *commands: str) -> dict[str, Any]:
    made = DuckdbTool(ConfiguredCredentials({"own": login}, {}), folder=folder / "duckdb")
    auth = {"here": {"source": "credential", "tool": tool, "key": "own"}}
    outcome = await made.run({"commands": list(commands), "auth": auth}, NOETL)
    await made.close()
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


@pytest.mark.parametrize(("tool", "scheme"), [("s3", "s3"), ("hmac", "gs")])
async def test_objects_are_read_and_written_with_the_credential(
    bucket: Bucket, tmp_path: Path, tool: str, scheme: str
) -> None:
    needs("httpfs")
    login = {"endpoint": bucket.endpoint, "key_id": "a", "secret_key": "b"}
    found = await run(login, tool, tmp_path, f"SELECT * FROM '{scheme}://bucket/rows.csv'")
    assert found["rows"] == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    copied = f"COPY (SELECT 7 AS n) TO '{scheme}://bucket/out.parquet'"
    read = f"SELECT n FROM '{scheme}://bucket/out.parquet'"
    assert (await run(login, tool, tmp_path, copied, read))["rows"] == [{"n": 7}]
    assert bucket.files("")[0].name == "out.parquet"


@pytest.mark.stack
async def test_a_postgres_database_is_attached_under_its_alias(
    database: Settings, tmp_path: Path
) -> None:
    needs("postgres_scanner")
    place = urlsplit(dsn(database))
    login = {
        "db_host": str(place.hostname),
        "db_port": str(place.port),
        "db_user": unquote(place.username or ""),
        "db_password": unquote(place.password or ""),
        "db_name": place.path.lstrip("/"),
    }
    connection = await asyncpg.connect(dsn(database))
    await connection.execute("DROP TABLE IF EXISTS pets; CREATE TABLE pets (id int, name text)")
    await run(login, "postgres", tmp_path, "INSERT INTO here.public.pets VALUES (1, 'cat')")
    found = await run(login, "postgres", tmp_path, "SELECT name FROM here.public.pets")
    assert found["rows"] == [{"name": "cat"}]
    assert await connection.fetchval("SELECT name FROM pets WHERE id = 1") == "cat"
    await connection.close()
