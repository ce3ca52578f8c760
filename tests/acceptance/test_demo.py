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


async def test_the_demo_saves_every_row_once_and_stops_everything(tmp_path: Path) -> None:
    demo = await start(tmp_path, "--patients", "20", "--error-rate", "0.05", "--json")

    out, said = await demo.communicate()

    assert demo.returncode == 0, said.decode()
    figures = orjson.loads(out)
    assert (figures["status"], figures["missing"], figures["doubled"]) == ("COMPLETED", 0, 0)
    assert figures["saved_rows"] == figures["expected_rows"] >= 2 * 20 * 12
    assert figures["requests"] > figures["expected_rows"]
    assert figures["stages"] == 6
    assert figures["events"] == figures["checksums_verified"]
    page = (tmp_path / "demo.html").read_text("utf-8")
    assert figures["execution_id"] in page
    assert page.count('class="lane"') == 7
    assert find_stack(tmp_path) is None
    assert left_over(tmp_path) == []


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
    assert b"everything the demo started is stopped" in said
    assert left_over(tmp_path) == []
