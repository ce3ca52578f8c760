"""Sinks to BigQuery: its own client, answered as its REST API does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.sinks import Sinks, kind


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
    assert "has no column 'w'; there are id, v" in str(strange.error)
