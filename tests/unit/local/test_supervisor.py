"""The supervisor over small processes of the shell's: no server is needed to see its rules."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from streams.local.errors import PartFailed
from streams.local.part import Part, PartReport, PartState
from streams.local.supervisor import Supervisor


def part(folder: Path, name: str, script: str = "exec sleep 300", **more) -> Part:
    """Describe a process that is ready once it has made a file of its name."""
    flag = folder / name

    async def ready() -> bool:
        return flag.exists()

    return Part(
        name=name,
        version="1",
        address="",
        command=("sh", "-c", f"touch {flag}; {script}"),
        log=folder / f"{name}.log",
        ready=ready,
        **more,
    )


class Reports(list[PartReport]):
    """Everything that was reported, and a way to wait for more."""

    def __call__(self, report: PartReport) -> None:
        self.append(report)

    async def until(self, name: str, state: PartState, restarts: int = 0) -> PartReport:
        async with asyncio.timeout(20):
            while True:
                for report in self:
                    if (report.part, report.state, report.restarts) == (name, state, restarts):
                        return report
                await asyncio.sleep(0.01)

    def order(self, state: PartState) -> list[str]:
        return [report.part for report in self if report.state is state]


async def test_a_part_that_is_killed_is_started_again_and_said_so(tmp_path):
    reports = Reports()
    supervisor = Supervisor([part(tmp_path, "a")], reports)
    await supervisor.start()
    first = await reports.until("a", PartState.READY)
    os.kill(first.pid, signal.SIGKILL)
    said = await reports.until("a", PartState.RESTARTING, restarts=1)
    second = await reports.until("a", PartState.READY, restarts=1)
    await supervisor.stop()
    assert "code -9" in said.detail
    assert second.pid != first.pid
    assert not psutil.pid_exists(second.pid)


async def test_a_part_that_ends_at_start_fails_the_start_with_its_last_words(tmp_path):
    async def never() -> bool:
        return False

    broken = replace(part(tmp_path, "a", "echo farewell; exit 3"), ready=never)
    supervisor = Supervisor([broken, part(tmp_path, "b")], reports := Reports())
    with pytest.raises(PartFailed, match=r"(?s)a ended with code 3.*farewell.*a\.log"):
        await supervisor.start()
    await supervisor.stop()
    assert sorted(reports.order(PartState.STOPPED)) == ["a", "b"]


async def test_parts_end_before_those_they_need(tmp_path):
    reports = Reports()
    parts = [
        part(tmp_path, "a"),
        part(tmp_path, "b", needs=("a",)),
        part(tmp_path, "c", needs=("b",)),
    ]
    supervisor = Supervisor(parts, reports)
    await supervisor.start()
    await supervisor.stop()
    assert reports.order(PartState.READY) == ["a", "b", "c"]
    assert reports.order(PartState.STOPPED) == ["c", "b", "a"]


async def test_a_part_that_does_not_wait_starts_beside_what_it_needs(tmp_path):
    eager = part(tmp_path, "b", needs=("a",), waits=False)

    async def after_b() -> None:
        await reports.until("b", PartState.READY)

    reports = Reports()
    supervisor = Supervisor([part(tmp_path, "a", before=after_b), eager], reports)
    await supervisor.start()
    await supervisor.stop()
    assert reports.order(PartState.READY) == ["b", "a"]


async def test_a_part_that_ignores_the_request_to_end_is_killed(tmp_path):
    deaf = part(tmp_path, "a", "trap '' TERM; while :; do sleep 0.05; done", stop_seconds=0.3)
    supervisor = Supervisor([deaf], reports := Reports())
    await supervisor.start()
    ready = await reports.until("a", PartState.READY)
    await supervisor.stop()
    assert not psutil.pid_exists(ready.pid)


async def test_a_part_started_patiently_may_fail_and_is_started_again(tmp_path):
    script = "test -e tried || { touch tried; exit 3; }; touch a; exec sleep 300"
    failing = replace(part(tmp_path, "a"), folder=tmp_path, command=("sh", "-c", script))
    reports = Reports()
    supervisor = Supervisor([failing, part(tmp_path, "b")], reports)
    await supervisor.start(patiently=True)
    second = await reports.until("a", PartState.READY, restarts=1)
    await supervisor.stop()
    assert not psutil.pid_exists(second.pid)
