from __future__ import annotations

from typing import Any

import pytest

from streams.clock import SettableClock
from streams.errors import Refused, Unavailable
from streams.playbook.model import Task
from streams.worker.attempt.pipeline import Pipeline
from streams.worker.attempt.row import PipelineRow, RowOutcome
from streams.worker.attempt.secrets import holding
from streams.worker.attempt.task_call import Caller
from streams.worker.errors import CredentialRefused
from streams.worker.port import Outcome
from tests.support.worker.memory import FakeTool, http_error, ok, rule, task
from tests.support.worker.tool_calls import ITEM

CALLER = Caller(
    tenant_id="acme", organization_id="care", execution_id=1, step="load", entity_id=7, attempt=1
)
RETRY_503 = rule(
    "{{ outcome.status == 'error' and outcome.http.status == 503 }}",
    "retry",
    attempts=3,
    delay_s=0.0,
)


def scope(**more: Any) -> dict[str, Any]:
    return {"workload": {}, "ctx": {}, "vars": {}, "iter": {}, "args": {}, **more}


async def run(tasks: list[Task], row: PipelineRow | None = None, **tools: Any) -> RowOutcome:
    tools.setdefault("noop", FakeTool(lambda config, call: ok()))
    pipeline = Pipeline(tasks, tools, CALLER, clock=SettableClock(), give_up_after_s=1.0)
    return await pipeline.run(row or PipelineRow(0, scope()))


async def test_the_last_tasks_data_is_the_result() -> None:
    tool = FakeTool()
    ran = await run([task("a", "t", {"x": 1}), task("b", "t", {"y": "{{ a.data.x }}"})], t=tool)
    assert (ran.status, ran.data) == ("success", {"y": 1})


async def test_earlier_tasks_are_seen_by_label_with_their_datas_own_keys() -> None:
    tool = FakeTool()
    seen = "{{ a.x }}|{{ a.status }}|{{ a.result.data.x }}|{{ _prev.x }}"
    ran = await run([task("a", "t", {"x": 1}), task("b", "t", {"seen": seen})], t=tool)
    assert ran.data == {"seen": "1|success|1|1"}


async def test_a_503_twice_then_success_succeeds_and_counts_two_retries() -> None:
    tool = FakeTool(first=[http_error(503), http_error(503)])
    row = PipelineRow(0, scope())
    ran = await run([task("fetch", "http", {"u": 1}, RETRY_503)], row, http=tool)
    assert ran.status == "success"
    assert row.retries == 2
    assert {call.partition for _, call in tool.calls} == {"0.1"}


async def test_attempts_counts_all_tries_and_the_error_says_how_many() -> None:
    tool = FakeTool(lambda config, call: http_error(503))
    ran = await run([task("fetch", "http", {}, RETRY_503)], http=tool)
    assert len(tool.calls) == 3
    assert ran.error == {
        "kind": "http.status",
        "message": "the server said 503 (after 3 tries)",
        "task": "fetch",
    }


async def test_a_call_without_any_answer_can_be_asked_for_its_status() -> None:
    lost = Outcome(status="error", error={"kind": "http.timeout", "message": "too slow"})
    ran = await run([task("fetch", "http", {}, RETRY_503)], http=FakeTool(first=[lost]))
    assert ran.error is not None
    assert ran.error["kind"] == "http.timeout"


async def test_an_error_that_no_rule_speaks_of_fails_the_row() -> None:
    ran = await run([task("fetch", "http", {})], http=FakeTool(first=[http_error(404)]))
    assert ran.status == "error"


@pytest.mark.parametrize("outages", [0, 1])
async def test_a_refusal_is_one_for_the_rules_also_after_an_outage(outages: int) -> None:
    class Tool:
        calls = 0

        async def run(self, config: Any, call: Any) -> Outcome:
            self.calls += 1
            if self.calls <= outages:
                raise Unavailable("the API is away")
            raise CredentialRefused("pg", "the step does not name it")

    continues = rule("{{ outcome.error.kind == 'refused' }}", "continue")
    ran = await run([task("fetch", "t", {}, continues), task("b", "noop")], t=Tool())
    assert ran.status == "success"
    ran = await run([task("fetch", "t", {})], t=Tool())
    assert ran.error is not None
    assert ran.error["kind"] == "refused"


async def test_a_refusal_after_an_outage_is_told_without_secrets() -> None:
    answers: list[Exception] = [Unavailable("away"), Refused("c4nary-42 is wrong")]

    class Tool:
        async def run(self, config: Any, call: Any) -> Outcome:
            raise answers.pop(0)

    with holding(ITEM, "w", lambda: 0.0) as held:
        held.secrets.add("pg", {"token": "c4nary-42"})
        ran = await run([task("fetch", "t", {})], t=Tool())
    assert ran.error is not None
    assert ran.error["message"] == "*** is wrong"


async def test_continue_goes_on_after_an_error() -> None:
    tasks = [task("fetch", "http", {}, rule(None, "continue")), task("b", "noop")]
    ran = await run(tasks, http=FakeTool(first=[http_error(404)]))
    assert ran.status == "success"


async def test_the_first_rule_that_holds_is_followed() -> None:
    rules = [rule("{{ true }}", "break"), rule(None, "fail")]
    tool = FakeTool()
    ran = await run([task("a", "t", {"x": 1}, *rules), task("b", "t", {"x": 2})], t=tool)
    assert ran.data == {"x": 1}


async def test_fail_after_a_success_names_the_task() -> None:
    ran = await run([task("a", "noop", {}, rule(None, "fail"))])
    assert ran.error == {"kind": "fail", "message": "failed by a rule of the playbook", "task": "a"}


async def test_a_jump_that_never_ends_fails_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.worker.attempt.pipeline.MAX_JUMPS", 500)
    ran = await run([task("a", "noop", {}, rule(None, "jump", to="a"))])
    assert ran.error is not None
    assert "500 jumps" in str(ran.error["message"])


async def test_a_jump_back_calls_under_a_new_number() -> None:
    again = rule("{{ vars.n | default(0) < 2 }}", "jump", to="a", set_vars={"n": 2})
    tool = FakeTool()
    await run([task("a", "t", {}), task("b", "noop", {}, again)], t=tool)
    assert [call.partition for _, call in tool.calls] == ["0.1", "0.2"]


async def test_set_ctx_is_seen_at_once_and_remembered() -> None:
    shared = {"kept": 1}
    row = PipelineRow(0, scope(ctx=shared))
    tasks = [task("a", "noop", {}, rule(None, "continue", set_ctx={"last": "{{ ctx.kept + 1 }}"}))]
    tool = FakeTool()
    ran = await run([*tasks, task("b", "t", {"c": "{{ ctx }}"})], row, t=tool)
    assert ran.data == {"c": {"kept": 1, "last": 2}}
    assert row.ctx == {"last": 2}
    assert shared == {"kept": 1}


async def test_an_expression_that_fails_fails_the_row_with_its_text() -> None:
    ran = await run([task("a", "t", {"x": "{{ nowhere.to }}"})], t=FakeTool())
    assert ran.error is not None
    assert ran.error["kind"] == "expression"
    assert "nowhere" in str(ran.error["message"])


async def test_an_unknown_tool_is_named() -> None:
    ran = await run([task("a", "htpt", {})], http=FakeTool())
    assert ran.error is not None
    assert "did you mean 'http'" in str(ran.error["message"])


async def test_strings_stay_strings() -> None:
    texts = ["12345", "1e5", "None", "true", ""]
    tool = FakeTool()
    row = PipelineRow(0, scope(items=texts))
    config = {"v": [f"{{{{ items[{i}] }}}}" for i in range(len(texts))]}
    ran = await run([task("a", "t", config)], row, t=tool)
    assert ran.data == {"v": texts}


def paginated() -> list[Task]:
    """Return the pipeline of the canonical pagination: fetch, store, jump while there is more."""
    select = [{"path": "$.paging.hasMore", "as": "has_more"}, {"path": "$.paging.page", "as": "p"}]
    codes = "[429,500,502,503,504]"
    transient = f"{{{{ outcome.status == 'error' and outcome.http.status in {codes} }}}}"
    more = {"has_more": "{{ outcome.result.extracted.has_more | default(false) }}"}
    reference = {"last_page_ref": "{{ outcome.result._ref | default(fetch_page._ref) }}"}
    return [
        task("init", "noop", {}, rule(None, "continue", set_iter={"page": 1})),
        task(
            "fetch_page",
            "http",
            {"url": "{{ workload.api }}{{ iter.endpoint.path }}", "page": "{{ iter.page }}"},
            rule(transient, "retry", attempts=10, backoff="exponential", delay_s=0.0),
            rule("{{ outcome.status == 'error' }}", "fail"),
            rule(None, "continue", set_iter=more),
            spec={"result": {"store": {"kind": "auto"}, "select": select}},
        ),
        task(
            "store_page",
            "postgres",
            {"command": "INSERT", "params": {"rows": "{{ fetch_page.rows }}"}},
            rule("{{ outcome.status == 'error' and outcome.pg.code in ['40001'] }}", "retry"),
            rule("{{ outcome.status == 'error' }}", "fail"),
            rule(None, "continue", set_ctx=reference),
        ),
        task(
            "paginate",
            "noop",
            {},
            rule(
                "{{ iter.has_more == true }}",
                "jump",
                to="fetch_page",
                set_iter={"page": "{{ (iter.page | int) + 1 }}"},
            ),
            rule(None, "break"),
        ),
    ]


async def test_pages_are_fetched_until_there_are_no_more() -> None:
    def page(config: Any, call: Any) -> Outcome:
        number = config["page"]
        data = {"rows": [number], "paging": {"hasMore": number < 4, "page": number}}
        return ok(data, detail={"http": {"status": 200}})

    http, postgres = FakeTool(page, first=[http_error(503)]), FakeTool(lambda c, call: ok({}))
    row = PipelineRow(0, scope(workload={"api": "http://host"}, iter={"endpoint": {"path": "/a"}}))
    ran = await run(paginated(), row, http=http, postgres=postgres)
    assert ran.status == "success"
    assert [config["params"]["rows"] for config, _ in postgres.calls] == [[1], [2], [3], [4]]
    assert {config["url"] for config, _ in http.calls} == {"http://host/a"}
    assert row.retries == 1
    assert row.ctx == {"last_page_ref": None}
