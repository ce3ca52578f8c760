"""Shell commands: one after the other, limited, and ended with what they started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from streams.worker.port import Outcome
from streams.worker.tools.shell.command import OUTPUT_BYTES
from streams.worker.tools.shell.tool import ShellTool
from tests.support.worker.tool_calls import CALL


async def run(**config: Any) -> Outcome:
    return await ShellTool(is_allowed=True).run(config, CALL)


def data(outcome: Outcome) -> dict[str, Any]:
    assert isinstance(outcome.data, dict)
    return outcome.data


def error(outcome: Outcome) -> dict[str, Any]:
    assert outcome.error is not None
    return dict(outcome.error)


async def test_a_deployment_refuses_commands_unless_it_allows_them(tmp_path: Path) -> None:
    outcome = await ShellTool(is_allowed=False).run({"command": f"touch {tmp_path}/x"}, CALL)
    assert error(outcome)["kind"] == "shell.refused"
    assert "tools.shell" in error(outcome)["message"]
    assert not os.listdir(tmp_path)


async def test_commands_run_until_one_fails() -> None:
    outcome = await run(cmds=["echo one", "echo two >&2; exit 3", "echo three"])
    assert (error(outcome)["kind"], error(outcome)["code"]) == ("shell.exit", 3)
    assert error(outcome)["message"] == "command 2 of 3 ended with exit code 3: two"
    found = data(outcome)
    assert (found["exit_code"], found["stdout"], found["stderr"]) == (3, "one\n", "two\n")
    assert [one["exit_code"] for one in found["commands"]] == [0, 3]


async def test_output_of_all_commands_is_joined() -> None:
    found = data(await run(cmds=["echo one", "echo two"]))
    assert (found["exit_code"], found["stdout"]) == (0, "one\ntwo\n")
    assert data(await run(command="echo $((1 + 2))"))["stdout"] == "3\n"


async def test_the_environment_has_no_secrets_of_the_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOETL_CREDENTIAL_PG", "secret")
    found = data(await run(command="env; pwd", env={"OWN": 5}, cwd=str(tmp_path)))
    assert "OWN=5\n" in found["stdout"]
    assert "secret" not in found["stdout"]
    assert found["stdout"].endswith(f"{tmp_path}\n")


async def test_output_beyond_the_limit_is_counted_and_dropped() -> None:
    found = data(await run(command=f"head -c {OUTPUT_BYTES + 5} /dev/zero | tr '\\0' x"))
    assert found["stdout"].endswith("x\n… 5 more bytes")
    assert len(found["stdout"]) < OUTPUT_BYTES + 50


async def test_a_timeout_kills_everything_that_a_command_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    command = f"sleep 60 & echo $! > {file}; wait"
    outcome = await run(cmds=["echo first", command], timeout=3)
    assert error(outcome)["kind"] == "shell.timeout"
    assert "command 2 of 2" in error(outcome)["message"]
    assert data(outcome)["stdout"] == "first\n"
    assert not _runs(int(file.read_text()))


async def test_what_a_command_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    found = data(await run(command=f"sleep 60 & echo $! > {file}; echo done"))
    assert found["stdout"] == "done\n"
    assert not _runs(int(file.read_text()))


async def test_a_command_ends_with_the_worker_that_started_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import asyncio\n"
        "from streams.worker.tools.shell.tool import ShellTool\n"
        "from tests.support.worker.tool_calls import CALL\n"
        f"config = {{'command': 'echo $$ > {file}; sleep 60'}}\n"
        "asyncio.run(ShellTool(is_allowed=True).run(config, CALL))\n"
    )
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await eventually(lambda: file.exists() and bool(file.read_text().strip()))
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    assert await eventually(lambda: not _runs(int(file.read_text())))


@pytest.mark.parametrize(
    "config", [{}, {"cmds": []}, {"cmds": [1]}, {"command": "x", "cwd": "/no"}]
)
async def test_a_task_without_usable_commands_is_refused(config: dict[str, Any]) -> None:
    assert error(await run(**config))["kind"] == "shell.config"


async def eventually(holds: Callable[[], bool]) -> bool:
    for _ in range(600):
        if holds():
            return True
        await asyncio.sleep(0.05)
    return False


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
