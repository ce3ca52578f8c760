"""`streams demo`, as people run it: it checks itself, and leaves nothing running."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import orjson
import psutil
import pytest

from streams.local.state import find_stack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's own folder, for one run after the other."""
    return tmp_path_factory.mktemp("demo")


async def start(data: Path, *options: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streams", "demo", "--data", str(data), *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def left_over(data: Path) -> list[str]:
    """Return the processes that have to do with the folder."""
    lines = [
        " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])
    ]
    return [line for line in lines if str(data) in line]


async def test_the_demo_saves_every_row_once_and_stops_everything(folder: Path) -> None:
    demo = await start(folder, "--patients", "20", "--error-rate", "0.05", "--json")

    out, said = await demo.communicate()

    assert demo.returncode == 0, said.decode()
    told = orjson.loads(out)
    assert (told["status"], told["missing"], told["doubled"]) == ("COMPLETED", 0, 0)
    assert told["saved_rows"] == told["expected_rows"] >= 2 * 20 * 12
    assert told["requests"] > told["expected_rows"]
    assert told["stages"] == 6
    assert told["events"] == told["checksums_verified"]
    page = (folder / "demo.html").read_text("utf-8")
    assert told["execution_id"] in page
    assert page.count('class="lane"') == 7
    assert find_stack(folder) is None
    assert left_over(folder) == []


async def test_a_demo_that_could_not_save_everything_says_so_and_exits_with_1(folder: Path) -> None:
    demo = await start(folder, "--facilities", "1", "--patients", "2", "--error-rate", "1")

    out, _ = await demo.communicate()

    assert demo.returncode == 1
    lines = out.decode().splitlines()
    assert "WRONG  rows: 24 rows missing" in lines
    assert any(line.startswith("WRONG  execution: it ended FAILED") for line in lines)
    assert "rows: 24 rows missing" in (folder / "demo.html").read_text("utf-8")
    assert left_over(folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_demo_that_is_interrupted_stops_everything(
    tmp_path: Path, number: signal.Signals
) -> None:
    demo = await start(tmp_path)
    assert demo.stderr is not None
    while b"starting" not in (line := await demo.stderr.readline()):
        assert line, "it ended before it started anything"

    demo.send_signal(number)
    _, said = await demo.communicate()

    assert demo.returncode == 1
    assert b"everything the demo had started is stopped" in said
    assert left_over(tmp_path) == []
