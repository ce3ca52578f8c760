"""The python tool with real processes: arguments, envelopes, limits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from streams.worker.port import Outcome
from streams.worker.tools.python.tool import PythonTool
from tests.support.worker.tool_calls import CALL


@pytest.fixture(scope="module")
async def child() -> AsyncIterator[PythonTool]:
    made = PythonTool(processes=1)
    yield made
    await made.close()


@pytest.fixture(params=["process", "in_process"])
def tool(request: pytest.FixtureRequest, child: PythonTool) -> PythonTool:
    return child if request.param == "process" else PythonTool(in_process=True)


async def run(tool: PythonTool, code: str, **more: Any) -> Outcome:
    return await tool.run({"code": code, **more}, CALL)


def kind(outcome: Outcome) -> Any:
    assert outcome.error is not None
    return outcome.error["kind"]


async def test_main_gets_the_arguments_it_names(tool: PythonTool) -> None:
    code = "def main(a, b=2, *, c):\n  return [a, b, c]"
    assert (await run(tool, code, args={"a": "1e5", "c": None, "d": 4})).data == ["1e5", 2, None]
    assert (await run(tool, "def main(**all): return all", input={"a": 1})).data == {"a": 1}
    assert (await run(tool, "def main(args): return args", args={"a": 1})).data == {"a": 1}


async def test_an_envelope_is_taken_apart_and_anything_else_is_data(tool: PythonTool) -> None:
    code = "def main(x): return x"
    envelope = {"status": "success", "data": {"n": 1}, "meta": {"m": 2}}
    outcome = await run(tool, code, args={"x": envelope})
    assert (outcome.data, outcome.meta) == ({"n": 1}, {"m": 2})
    assert (await run(tool, code, args={"x": {"status": "active"}})).data == {"status": "active"}
    failed = await run(tool, code, args={"x": {"status": "error", "error": "no luck"}})
    assert (failed.status, failed.error) == (
        "error",
        {"kind": "python.failed", "message": "no luck"},
    )


async def test_what_it_prints_is_kept_apart_from_what_it_returns(tool: PythonTool) -> None:
    outcome = await run(tool, "def main():\n  print('hello')\n  return 5")
    assert (outcome.data, outcome.meta) == (5, {"log": "hello\n"})
    loud: Any = (await run(tool, "def main(): print('x' * 10**6)")).meta["log"]
    assert len(loud) < 10_000
    assert "more characters" in loud


async def test_an_exception_is_told_with_the_authors_line(tool: PythonTool) -> None:
    outcome = await run(tool, "def main():\n  x = 1\n  return 1 / 0")
    assert kind(outcome) == "python.exception"
    assert "ZeroDivisionError" in str(outcome.error)
    assert "line 3, in main" in str(outcome.error)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def main(:", "SyntaxError"),
        ("def main(a): pass", "needs 'a'"),
        ("def main(): return object()", "not JSON"),
        ("def main(): return float('nan')", "JSON"),
        ("import sys\ndef main(): sys.exit(3)", "SystemExit"),
    ],
)
async def test_mistakes_are_named(tool: PythonTool, code: str, said: str) -> None:
    outcome = await run(tool, code)
    assert kind(outcome) == "python.exception"
    assert said in str(outcome.error)


async def test_dates_decimals_and_wide_integers_come_as_text(tool: PythonTool) -> None:
    code = (
        "import datetime, decimal\n"
        "def main(): return [datetime.date(2026, 1, 31), decimal.Decimal('1.10'), 10**22]"
    )
    assert (await run(tool, code)).data == ["2026-01-31", "1.10", "10000000000000000000000"]


async def test_one_call_sees_nothing_of_another(tool: PythonTool) -> None:
    code = "seen = []\ndef main(n):\n  seen.append(n)\n  return seen"
    assert (await run(tool, code, args={"n": 1})).data == [1]
    assert (await run(tool, code, args={"n": 2})).data == [2]


async def test_an_async_main_is_awaited(child: PythonTool) -> None:
    code = "import asyncio\nasync def main():\n  await asyncio.sleep(0)\n  return 'done'"
    assert (await run(child, code)).data == "done"


async def test_a_process_that_hangs_is_ended_and_replaced(child: PythonTool) -> None:
    outcome = await run(child, "def main():\n  while True: pass", timeout=0.3)
    assert kind(outcome) == "python.timeout"
    assert (await run(child, "def main(): return 1")).data == 1


async def test_a_process_that_dies_is_replaced(child: PythonTool) -> None:
    outcome = await run(child, "import os\ndef main(): os._exit(3)")
    assert kind(outcome) == "python.died"
    assert (await run(child, "def main(): return 1")).data == 1


async def test_a_call_that_is_cancelled_leaves_no_answer_for_the_next(child: PythonTool) -> None:
    slow = "import time\ndef main():\n  time.sleep(0.2)\n  return 'old'"
    task = asyncio.create_task(run(child, slow))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run(child, "def main(): return 'new'")).data == "new"


async def test_memory_and_processor_time_are_limited() -> None:
    tool = PythonTool(processes=1, memory_bytes=200 * 1024 * 1024, cpu_s=1, timeout_s=30)
    try:
        assert kind(await run(tool, "def main(): return len(bytearray(10**9))")) == "python.memory"
        assert (await run(tool, "def main(): return 1")).data == 1
        assert kind(await run(tool, "def main():\n  while True: pass")) == "python.cpu"
        assert (await run(tool, "def main(): return 2")).data == 2
    finally:
        await tool.close()


async def test_the_workers_secrets_are_not_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NOETL_CREDENTIAL_PG", "secret")
    tool = PythonTool(processes=1)
    try:
        outcome = await run(tool, "import os\ndef main(): return dict(os.environ)")
    finally:
        await tool.close()
    assert "secret" not in str(outcome.data)


async def test_native_output_does_not_get_among_the_answers(child: PythonTool) -> None:
    code = "import os\ndef main():\n  os.write(1, b'noise')\n  return 7"
    assert (await run(child, code)).data == 7


async def test_code_is_needed(child: PythonTool) -> None:
    assert kind(await child.run({}, CALL)) == "python.config"


async def test_code_ends_with_the_worker_that_was_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    program = (
        "import asyncio\nfrom streams.worker.tools.python.tool import PythonTool\n"
        "from tests.support.worker.tool_calls import CALL\n"
        f"run = PythonTool(processes=1).run({{'code': {code!r}, 'timeout': 600}}, CALL)\n"
        "asyncio.run(run)\n"
    )
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    async with asyncio.timeout(30):
        while not (pid_file.exists() and pid_file.read_text()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        worker.kill()
        await worker.wait()
        while psutil.pid_exists(int(pid_file.read_text())):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
