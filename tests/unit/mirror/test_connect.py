"""Connect's answers become our values, and its complaints our errors.

The server here only answers what Connect would; the real one is asked in integration/.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import (
    BadConnector,
    ConnectorFailed,
    ConnectorUnknown,
    ConnectRefused,
    ConnectUnavailable,
)
from streams.mirror.connector_status import ConnectorStatus, ConnectorTask, summarise

TRACE = """\
org.apache.kafka.connect.errors.ConnectException: An exception occurred in the change event producer
\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:71)
Caused by: io.debezium.DebeziumException: Failed to start replication stream
\tat io.debezium.connector.postgresql.Something.run(Something.java:12)
Caused by: org.postgresql.util.PSQLException: ERROR: publication "noetl_mirror" does not exist
\tat org.postgresql.core.v3.QueryExecutorImpl.receive(QueryExecutorImpl.java:2733)
\t... 9 more
"""


Script = dict[str, list[tuple[int, Any]]]


class Answers:
    """A scripted Connect: each request takes the next answer of its method and path."""

    def __init__(self, script: Script) -> None:
        self.script, self.asked = script, list[str]()

    async def answer(self, request: web.Request) -> web.Response:
        if request.method == "PUT" and request.content_type != "application/json":
            return web.json_response({"message": "HTTP 415"}, status=415)
        what = f"{request.method} {request.path_qs}"
        self.asked.append(what)
        code, body = self.script[what].pop(0)
        return web.Response(status=code) if body is None else web.json_response(body, status=code)


@asynccontextmanager
async def connect_to(answers: Answers, timeout_s: float = 5) -> AsyncIterator[ConnectClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answers.answer)
    async with (
        TestServer(app) as server,
        ConnectClient(str(server.make_url("/")), timeout_s=timeout_s) as connect,
    ):
        yield connect


def state(connector: str, *tasks: str, trace: str = "") -> dict[str, Any]:
    return {
        "connector": {"state": connector},
        "tasks": [
            {"id": number, "state": one, **({"trace": trace} if trace else {})}
            for number, one in enumerate(tasks)
        ],
    }


def test_a_trace_is_reduced_to_what_failed_and_its_root_cause() -> None:
    assert summarise(TRACE) == (
        "ConnectException: An exception occurred in the change event producer"
        ' <- PSQLException: ERROR: publication "noetl_mirror" does not exist'
    )


@pytest.mark.parametrize(
    ("trace", "summary"),
    [("", "no trace"), ("a.b.Broken: by hand\n\tat x", "Broken: by hand")],
)
def test_a_trace_without_causes_is_its_first_line(trace: str, summary: str) -> None:
    assert summarise(trace) == summary


@pytest.mark.parametrize(
    ("states", "running"),
    [(("RUNNING",), True), ((), False), (("RUNNING", "UNASSIGNED"), False)],
)
def test_a_connector_runs_when_it_has_tasks_and_all_of_them_run(
    states: tuple[str, ...], running: bool
) -> None:
    tasks = tuple(ConnectorTask(number, one) for number, one in enumerate(states))
    assert ConnectorStatus("x", "RUNNING", tasks).running is running


async def test_an_equal_configuration_is_not_sent_again() -> None:
    answers = Answers({"GET /connectors/x/config": [(200, {"name": "x", "a": "1"})]})
    async with connect_to(answers) as connect:
        assert await connect.apply("x", {"a": "1"}) == "unchanged"
    assert answers.asked == ["GET /connectors/x/config"]


VALIDATE = "PUT /connector-plugins/Source/config/validate"
VALID = (200, {"configs": [{"value": {"name": "tasks.max", "errors": []}}, {"value": None}]})
OLD, NEW = {"connector.class": "org.example.Source", "a": "0"}, {"connector.class": "Source"}


async def test_a_new_connector_is_created() -> None:
    script: Script = {
        "GET /connectors/x/config": [(404, {"message": "not found"})],
        VALIDATE: [VALID],
        "PUT /connectors/x/config": [(201, {})],
    }
    async with connect_to(Answers(script)) as connect:
        assert await connect.apply("x", NEW) == "created"


async def test_a_running_connector_is_stopped_while_it_changes() -> None:
    stopped = (200, {"connector": {"state": "STOPPED"}, "tasks": []})
    answers = Answers(
        {
            "GET /connectors/x/config": [(200, OLD)],
            VALIDATE: [VALID],
            "GET /connectors/x/status": [(200, state("RUNNING", "RUNNING")), stopped],
            "PUT /connectors/x/stop": [(204, None)],
            "PUT /connectors/x/config": [(200, {})],
            "PUT /connectors/x/resume": [(202, None)],
        }
    )
    async with connect_to(answers) as connect:
        assert await connect.apply("x", NEW) == "changed"
    changes = [asked for asked in answers.asked if asked.startswith("PUT /connectors/")]
    assert [asked.rsplit("/", 1)[1] for asked in changes] == ["stop", "config", "resume"]


@pytest.mark.parametrize("resting", ["PAUSED", "STOPPED"])
async def test_a_connector_at_rest_is_changed_and_stays_at_rest(resting: str) -> None:
    script: Script = {
        "GET /connectors/x/config": [(200, OLD)],
        VALIDATE: [VALID],
        "GET /connectors/x/status": [(200, state(resting))] * 2,
        "PUT /connectors/x/config": [(200, {})],
    }
    async with connect_to(Answers(script)) as connect:
        assert await connect.apply("x", NEW) == "changed"
        assert (await connect.wait_until_settled("x")).state == resting


async def test_an_invalid_configuration_names_each_field_and_changes_nothing() -> None:
    entry = {"value": {"name": "slot.name", "errors": ["must be lower case", "is too long"]}}
    fine = {"value": {"name": "tasks.max", "errors": []}}
    answers = Answers(
        {
            "GET /connectors/x/config": [(200, OLD)],
            VALIDATE: [(200, {"configs": [fine, entry]})],
        }
    )
    async with connect_to(answers) as connect:
        with pytest.raises(BadConnector, match=r"slot\.name: must be lower case") as caught:
            await connect.apply("x", NEW)
    assert caught.value.problems == {"slot.name": "must be lower case is too long"}
    assert answers.asked == ["GET /connectors/x/config", VALIDATE]


async def test_a_refusal_that_is_not_about_fields_keeps_connects_words() -> None:
    script = {"DELETE /connectors/x/offsets": [(400, {"message": "must be in the\nSTOPPED state"})]}
    async with connect_to(Answers(script)) as connect:
        with pytest.raises(ConnectRefused, match="must be in the STOPPED state"):
            await connect.delete_offsets("x")


async def test_a_request_during_a_rebalance_is_made_again() -> None:
    busy = (409, {"message": "rebalance"})
    answers = Answers({"PUT /connectors/x/stop": [busy, busy, (204, None)]})
    async with connect_to(answers) as connect:
        await connect.stop("x")
    assert len(answers.asked) == 3


async def test_a_rebalance_that_does_not_end_is_unavailable() -> None:
    answers = Answers({"PUT /connectors/x/stop": [(409, {"message": "rebalance"})] * 10})
    async with connect_to(answers, timeout_s=0.2) as connect:
        with pytest.raises(ConnectUnavailable, match="rebalance"):
            await connect.stop("x")


async def test_an_internal_error_is_unavailable_and_a_wrong_name_is_unknown() -> None:
    script = {
        "GET /connectors/x/status": [(500, {"message": "timed out"})],
        "GET /connectors/y/status": [(404, {"message": "No status found"})],
    }
    async with connect_to(Answers(script)) as connect:
        with pytest.raises(ConnectUnavailable, match="timed out"):
            await connect.status("x")
        with pytest.raises(ConnectorUnknown, match="No status found"):
            await connect.status("y")


async def test_nobody_listening_is_unavailable_and_says_what_to_do() -> None:
    async with ConnectClient(f"http://127.0.0.1:{unused_port()}") as connect:
        with pytest.raises(ConnectUnavailable, match=r"see that it is up and that connect\.url"):
            await connect.names()


async def test_waiting_ends_when_connector_and_tasks_run() -> None:
    script = {
        "GET /connectors/x/status": [
            (404, {"message": "not yet"}),
            (200, state("RUNNING")),
            (200, state("RUNNING", "UNASSIGNED")),
            (200, state("RUNNING", "RUNNING")),
        ]
    }
    async with connect_to(Answers(script)) as connect:
        assert (await connect.wait_until_running("x")).running


async def test_waiting_for_a_failed_task_ends_with_its_cause() -> None:
    answers = [(200, state("RUNNING", "FAILED", trace=TRACE))]
    async with connect_to(Answers({"GET /connectors/x/status": answers})) as connect:
        with pytest.raises(ConnectorFailed, match=r'task 0: .*"noetl_mirror" does not exist'):
            await connect.wait_until_running("x")


async def test_waiting_too_long_tells_the_last_state() -> None:
    answers = [(200, state("RUNNING", "UNASSIGNED"))] * 20
    async with connect_to(Answers({"GET /connectors/x/status": answers})) as connect:
        with pytest.raises(ConnectorFailed, match="x: RUNNING, task 0 UNASSIGNED"):
            await connect.wait_until_running("x", timeout_s=0.2)


async def test_a_restart_waits_for_the_old_tasks_to_end() -> None:
    answers = Answers(
        {
            "PUT /connectors/x/stop": [(204, None)],
            "GET /connectors/x/status": [
                (200, state("RUNNING", "FAILED", trace=TRACE)),
                (200, state("STOPPED", "FAILED", trace=TRACE)),
                (200, state("STOPPED")),
            ],
            "PUT /connectors/x/resume": [(202, None)],
        }
    )
    async with connect_to(answers) as connect:
        await connect.restart("x")
    assert answers.asked[0] == "PUT /connectors/x/stop"
    assert answers.asked[-1] == "PUT /connectors/x/resume"
    assert len(answers.asked) == 5
