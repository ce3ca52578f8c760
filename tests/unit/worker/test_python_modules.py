"""Python in NoETL's spelling: code runs as a module whose globals are its inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streams.playbook.spelling import Spelling
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.python.tool import PythonTool
from streams.worker.tools.script import Scripts
from tests.support.worker.tool_calls import CALL

NOETL = replace(CALL, spelling=Spelling.NOETL)


async def run(code: str | None, **more: Any) -> Outcome:
    tool = PythonTool(in_process=True, scripts=Scripts(ConfiguredCredentials({}, {})))
    config = more if code is None else {"code": code, **more}
    return await tool.run(config, NOETL)


def error_of(outcome: Outcome) -> tuple[Any, str]:
    assert outcome.error is not None
    return outcome.error["kind"], str(outcome.error["message"])


async def test_inputs_are_globals_that_may_be_read_and_then_assigned() -> None:
    outcome = await run(
        "count = count + 1\nresult = [count, name]", input={"count": 1, "name": "a"}
    )
    assert (outcome.status, outcome.data) == ("success", [2, "a"])
    assert (await run("result = n", args={"n": 3})).data == 3


async def test_a_function_sees_and_changes_the_globals_of_its_module() -> None:
    code = "def add():\n  global n\n  n += 1\n  return n\nresult = add() + n"
    assert (await run(code, input={"n": 1})).data == 4


async def test_input_data_is_the_whole_mapping_unless_an_input_has_that_name() -> None:
    assert (await run("result = input_data", input={"a": 1})).data == {"a": 1}
    assert (await run("result = input_data", input={"input_data": "mine"})).data == "mine"


async def test_the_context_is_a_mapping_whose_keys_are_names_as_well() -> None:
    context = {"start": {"rows": [1]}, "limit": 5, "result": "old"}
    code = "result = [context.get('start'), limit, context['result']]"
    assert (await run(code, context=context)).data == [{"rows": [1]}, 5, "old"]
    assert (await run("x = 1", context=context)).data is None
    assert (await run("result = limit", context=context, input={"limit": 6})).data == 6


async def test_four_modules_need_no_import() -> None:
    code = "result = [json.dumps(1), os.sep, datetime.date(2026, 1, 2), len(str(uuid.uuid4()))]"
    assert (await run(code)).data == ["1", "/", "2026-01-02", 36]


async def test_libs_are_imported_under_their_alias() -> None:
    libs = {"b": "base64", "Decimal": {"from": "decimal", "import": "Decimal"}}
    libs["parse"] = {"from": "urllib", "import": "parse"}
    code = "result = [b.b64encode(b'a').decode(), Decimal('1.10'), parse.quote('/', safe='')]"
    assert (await run(code, libs=libs)).data == ["YQ==", "1.10", "%2F"]
    kind, why = error_of(await run("result = 1", libs={"x": "no_such_module"}))
    assert kind == "python.exception"
    assert "no_such_module" in why


async def test_a_list_of_libs_imports_nothing_and_is_reported() -> None:
    outcome = await run("print('out')\nresult = 1", libs=["psycopg2-binary"])
    assert outcome.data == 1
    assert "'libs' is a list" in str(outcome.meta["log"])
    assert str(outcome.meta["log"]).endswith("out\n")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def main(a, b=2):\n  return [a, b]", [1, 2]),
        ("async def main(a):\n  return a", 1),
        ("def main(**names):\n  return names", {"a": 1}),
        ("def main(input_data, context):\n  return [input_data, context]", [{"a": 1}, {"c": 3}]),
        ("def main():\n  return 'main'\nresult = 'result'", "result"),
        ("def main(c):\n  return c", 3),
    ],
)
async def test_main_gets_inputs_by_name_where_there_is_no_result(code: str, expected: Any) -> None:
    assert (await run(code, input={"a": 1}, context={"c": 3})).data == expected


async def test_an_input_called_result_is_not_an_answer_while_main_gives_one() -> None:
    code = "def main(result):\n  return result + 1"
    assert (await run(code, input={"result": 1})).data == 2


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("n = n + 1\nreturn {'n': n}\nraise ValueError", {"n": 2}),
        (
            "if n:\n  try:\n    return 'early'\n  except Exception:\n    pass\nresult = 'late'",
            "early",
        ),
        ("def f():\n  return 5\nreturn f()", 5),
        ("return", None),
    ],
)
async def test_return_at_module_level_ends_the_code(code: str, expected: Any) -> None:
    outcome = await run(code, input={"n": 1})
    assert (outcome.status, outcome.data) == ("success", expected)


async def test_a_returned_status_of_error_is_data() -> None:
    value = {"status": "error", "error": "missing", "data": 1}
    outcome = await run("result = value", input={"value": value})
    assert (outcome.status, outcome.data) == ("success", value)


async def test_an_exception_has_the_line_of_the_code_also_after_a_return() -> None:
    outcome = await run("if False:\n  return 1\nx = 1 / 0")
    assert error_of(outcome) == ("python.exception", "ZeroDivisionError: division by zero")
    assert outcome.error is not None
    assert outcome.error["trace"] == "line 3, in <module>\n"


async def test_the_spelling_of_the_specification_has_no_global_inputs() -> None:
    tool = PythonTool(in_process=True)
    outcome = await tool.run({"code": "result = n", "input": {"n": 1}}, CALL)
    assert error_of(outcome)[1].startswith("NameError")


async def test_a_process_runs_modules_as_the_worker_does() -> None:
    tool = PythonTool(processes=1)
    config: dict[str, Any] = {
        "code": "print(n)\nreturn [n, libs_json.dumps(context)]",
        "input": {"n": 1},
    }
    config |= {"libs": {"libs_json": "json"}, "context": {"a": None}}
    try:
        outcome = await tool.run(config, NOETL)
    finally:
        await tool.close()
    assert (outcome.data, outcome.meta) == ([1, '{"a": null}'], {"log": "1\n"})


async def test_a_script_stands_for_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inline = {"uri": "inline", "source": {"type": "inline", "code": "result = n"}}
    assert (await run(None, script=inline, input={"n": 1})).data == 1
    (tmp_path / "one.py").write_text("def main(n):\n  return n + 1")
    monkeypatch.chdir(tmp_path)
    in_file = {"uri": "./one.py", "source": {"type": "file"}}
    assert (await run(None, script=in_file, input={"n": 1})).data == 2


async def test_a_script_that_cannot_be_read_is_an_error_of_the_configuration() -> None:
    kind, why = error_of(await run(None, script={"uri": "none.py", "source": {"type": "file"}}))
    assert kind == "python.config"
    assert "'none.py' cannot be read" in why
    assert "working directory" in why
    both = await run("result = 1", script={"uri": "x.py"})
    assert error_of(both) == ("python.config", "'code' and 'script' are given; give one")
    other = await run(None, script={"uri": "x.py", "source": {"type": "ftp"}})
    assert "not one of inline, file, http, s3, gcs" in error_of(other)[1]
