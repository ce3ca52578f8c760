"""The supervisor over small processes of the shell's: no server is needed to see its rules."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from streams.local.errors import ServiceFailed
from streams.local.service import Service, ServiceReport, ServiceState
from streams.local.supervisor import Supervisor


def service(folder: Path, name: str, script: str = "exec sleep 300", **more) -> Service:
    """Describe a process that is ready once it has made a file of its name."""
    flag = folder / name

    async def ready() -> bool:
        return flag.exists()

    return Service(
        name=name,
        version="1",
        address="",
        command=("sh", "-c", f"touch {flag}; {script}"),
        log=folder / f"{name}.log",
        ready=ready,
        **more,
    )


class Reports(list[ServiceReport]):
    """Everything that was reported, and a way to wait for more."""

    def __call__(self, report: ServiceReport) -> None:
        self.append(report)

    async def until(self, name: str, state: ServiceState, restarts: int = 0) -> ServiceReport:
        async with asyncio.timeout(20):
            while True:
                for report in self:
                    if (report.service, report.state, report.restarts) == (name, state, restarts):
                        return report
                await asyncio.sleep(0.01)

    def order(self, state: ServiceState) -> list[str]:
        return [report.service for report in self if report.state is state]


async def test_a_part_that_is_killed_is_started_again_and_said_so(tmp_path):
    reports = Reports()
    supervisor = Supervisor([service(tmp_path, "a")], reports)
    await supervisor.start()
    first = await reports.until("a", ServiceState.READY)
    os.kill(first.pid, signal.SIGKILL)
    said = await reports.until("a", ServiceState.RESTARTING, restarts=1)
    second = await reports.until("a", ServiceState.READY, restarts=1)
    await supervisor.stop()
    assert "code -9" in said.detail
    assert second.pid != first.pid
    assert not psutil.pid_exists(second.pid)


async def test_a_part_that_ends_at_start_fails_the_start_with_its_last_words(tmp_path):
    async def never() -> bool:
        return False

    broken = replace(service(tmp_path, "a", "echo farewell; exit 3"), ready=never)
    supervisor = Supervisor([broken, service(tmp_path, "b")], reports := Reports())
    with pytest.raises(ServiceFailed, match=r"(?s)a exited with code 3.*farewell.*a\.log"):
        await supervisor.start()
    await supervisor.stop()
    assert sorted(reports.order(ServiceState.STOPPED)) == ["a", "b"]


async def test_parts_end_before_those_they_need(tmp_path):
    reports = Reports()
    services = [
        service(tmp_path, "a"),
        service(tmp_path, "b", needs=("a",)),
        service(tmp_path, "c", needs=("b",)),
    ]
    supervisor = Supervisor(services, reports)
    await supervisor.start()
    await supervisor.stop()
    assert reports.order(ServiceState.READY) == ["a", "b", "c"]
    assert reports.order(ServiceState.STOPPED) == ["c", "b", "a"]


async def test_a_part_that_does_not_wait_starts_beside_what_it_needs(tmp_path):
    eager = service(tmp_path, "b", needs=("a",), waits=False)

    async def after_b() -> None:
        await reports.until("b", ServiceState.READY)

    reports = Reports()
    supervisor = Supervisor([service(tmp_path, "a", before=after_b), eager], reports)
    await supervisor.start()
    await supervisor.stop()
    assert reports.order(ServiceState.READY) == ["b", "a"]


async def test_a_part_that_ignores_the_request_to_end_is_killed(tmp_path):
    deaf = service(tmp_path, "a", "trap '' TERM; while :; do sleep 0.05; done", stop_seconds=0.3)
    supervisor = Supervisor([deaf], reports := Reports())
    await supervisor.start()
    ready = await reports.until("a", ServiceState.READY)
    await supervisor.stop()
    assert not psutil.pid_exists(ready.pid)


async def test_a_part_started_patiently_may_fail_and_is_started_again(tmp_path):
    script = "test -e tried || { touch tried; exit 3; }; touch a; exec sleep 300"
    failing = replace(service(tmp_path, "a"), folder=tmp_path, command=("sh", "-c", script))
    reports = Reports()
    supervisor = Supervisor([failing, service(tmp_path, "b")], reports)
    await supervisor.start(patiently=True)
    second = await reports.until("a", ServiceState.READY, restarts=1)
    await supervisor.stop()
    assert not psutil.pid_exists(second.pid)
