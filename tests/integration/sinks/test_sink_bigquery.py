"""Sinks to BigQuery: its own client, answered as its REST API does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.support.worker.sinks import Sinks, call, kind


async def serving(app: web.Application) -> tuple[web.AppRunner, str]:
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}"


class Warehouse:
    """Answers as BigQuery's REST API does: tables, load jobs by upload, query jobs."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.loaded: list[dict[str, Any]] = []
        self.loads: list[str] = []
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
        fields = [
            {"name": "id", "type": "INTEGER"},
            {"name": "v", "type": "STRING"},
            {"name": "n", "type": "NUMERIC"},
            {"name": "j", "type": "JSON"},
            {"name": "tags", "type": "STRING", "mode": "REPEATED"},
            {"name": "r", "type": "RECORD", "fields": [{"name": "a", "type": "STRING"}]},
        ]
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
        self.loads.append(made["configuration"]["load"]["writeDisposition"])
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
        reference = await sinks.twice(block, result=[{"id": 1, "v": "1e5"}])
        await sinks.twice({**block, "mode": "upsert", "key": "id"}, result={"id": 1, "v": None})
        await sinks.twice(statement)
        outcome = await sinks.once({**block, "table": "d.nowhere"}, result={"id": 1})
    finally:
        await sinks.tool.close()
        await runner.cleanup()
    assert reference == {"store": "bigquery", "key": "d.t", "range": "rows:1"}
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


async def test_bigquery_binds_values_as_the_columns_of_the_table(tmp_path: Path) -> None:
    warehouse = Warehouse()
    runner, url = await serving(warehouse.app())
    sinks = Sinks(tmp_path, {"bq": {"project": "p", "endpoint": url}})
    block = {"storage": "bigquery", "auth": "bq", "table": "d.t", "data": "{{ result }}"}
    upsert = {**block, "mode": "upsert", "key": "ID"}
    row = {"ID": 1, "v": 5, "n": None, "j": {"a": [1]}, "tags": ["x", "y"]}
    try:
        await sinks.twice(upsert, result=row)
        strange = await sinks.once(upsert, result={"ID": 1, "w": 1})
        record = await sinks.once(upsert, result={"ID": 1, "r": {"a": "b"}})
    finally:
        await sinks.tool.close()
        await runner.cleanup()
    [merged] = warehouse.queries
    bound = [(one["parameterType"], one["parameterValue"]) for one in merged["queryParameters"]]
    assert [kind["type"] for kind, _ in bound] == ["INT64", "STRING", "NUMERIC", "JSON", "ARRAY"]
    assert [value.get("value") for _, value in bound[:4]] == ["1", "5", None, '{"a": [1]}']
    assert kind(strange) == kind(record) == "bigquery.config"
    assert "has no column 'w'; it has id, v" in str(strange.error)


@pytest.fixture
async def bigquery(tmp_path: Path) -> AsyncIterator[tuple[Sinks, Warehouse]]:
    warehouse = Warehouse()
    runner, url = await serving(warehouse.app())
    sinks = Sinks(tmp_path, {"bq": {"project": "p", "endpoint": url}})
    yield sinks, warehouse
    await sinks.tool.close()
    await runner.cleanup()


BLOCK = {"storage": "bigquery", "auth": "bq", "table": "d.t", "data": "{{ result }}"}


def bound(query: dict[str, Any]) -> list[Any]:
    return [one["parameterValue"].get("value") for one in query["queryParameters"]]


async def test_rows_are_loaded_as_their_columns_want_them(
    bigquery: tuple[Sinks, Warehouse],
) -> None:
    sinks, warehouse = bigquery
    row = {"v": {"a": [1]}, "j": {"b": 1}, "tags": ["x", {"c": 1}], "r": {"a": "b"}}
    await sinks.twice({**BLOCK, "mode": "overwrite"}, result=[row])
    await sinks.twice(BLOCK, result=[{"V": 5, "n": "1.5"}])
    assert warehouse.loads == ["WRITE_TRUNCATE", "WRITE_APPEND"]
    texts = {"v": '{"a":[1]}', "tags": ["x", '{"c":1}']}
    assert warehouse.loaded == [{**row, **texts}, {"V": "5", "n": "1.5"}]


async def test_rows_are_merged_by_their_columns_and_of_a_key_the_last(
    bigquery: tuple[Sinks, Warehouse],
) -> None:
    sinks, warehouse = bigquery
    update, upsert = ({**BLOCK, "mode": mode, "key": "id"} for mode in ("update", "upsert"))
    rows = [{"id": 1, "v": "a"}, {"id": 2, "n": 5}, {"id": 1, "v": "b"}]
    await sinks.twice(update, result=rows)
    first, second = warehouse.queries
    assert first["query"] == (
        "MERGE INTO `p.d.t` AS t USING (SELECT @p0_0 AS `id`, @p0_1 AS `v`) AS s "
        "ON t.`id` = s.`id` WHEN MATCHED THEN UPDATE SET `v` = s.`v`"
    )
    assert (bound(first), bound(second)) == (["1", "b"], ["2", "5"])
    await sinks.twice(upsert, result=[])
    assert len(warehouse.queries) == 2
    for result in ({"id": 1}, [{"id": 1, "v": "a"}, {"v": "b"}]):
        assert kind(await sinks.once(update, result=result)) == "bigquery.config"


async def test_more_rows_than_a_query_takes_go_in_several_jobs(
    bigquery: tuple[Sinks, Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.worker.sinks.bigquery.MOST_PARAMETERS", 5)
    sinks, warehouse = bigquery
    rows = [{"id": n, "v": "x"} for n in range(5)]
    await sinks.twice({**BLOCK, "mode": "upsert", "key": "id"}, result=rows)
    assert [bound(one)[::2] for one in warehouse.queries] == [["0", "1"], ["2", "3"], ["4"]]
    first, *others = warehouse.jobs
    assert others == [f"{first}-part1", f"{first}-part2"]


@pytest.mark.parametrize("statement", ["", "-- nothing", "SELECT 1; SELECT 2"])
async def test_a_statement_is_one(bigquery: tuple[Sinks, Warehouse], statement: str) -> None:
    config = {"storage": "bigquery", "driver": "bigquery", "auth": "bq", "statement": statement}
    outcome = await bigquery[0].tool.run(config, call())
    assert kind(outcome) == "bigquery.config"
    assert "takes one statement" in str(outcome.error)
