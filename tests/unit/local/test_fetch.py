"""Fetching files by their coordinates, and stopping on request."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from streams.local.errors import JarsUnavailable
from streams.local.fetch import FetchError, Jgo, Mvn, choose_fetcher
from streams.local.jars import provide_jars
from streams.local.pom import Coordinate
from streams.local.stack import Stack
from streams.local.supervise import run_until_signal
from tests.support.waiting import until

JAR = Coordinate("org.example", "thing", "1.0")
ARCHIVE = Coordinate("org.example", "bundle", "2.1", "tar.gz", "plugin")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """A Maven repository with the two files, on a port of this machine."""
    for coordinate in (JAR, ARCHIVE):
        group = coordinate.group.replace(".", "/")
        folder = tmp_path / "repository" / group / coordinate.artifact / coordinate.version
        folder.mkdir(parents=True)
        (folder / coordinate.file_name).write_bytes(coordinate.file_name.encode())
    handler = partial(_Quiet, directory=str(tmp_path / "repository"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def test_jgo_brings_files_under_the_names_that_maven_gives_them(
    repository: str, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    Jgo(repositories={"test": repository}).fetch("core", [JAR, ARCHIVE], target)
    assert (target / "thing-1.0.jar").read_text() == "thing-1.0.jar"
    assert (target / "bundle-2.1-plugin.tar.gz").read_text() == "bundle-2.1-plugin.tar.gz"


def test_jgo_names_what_it_cannot_find(repository: str, tmp_path: Path) -> None:
    missing = Coordinate("org.example", "absent", "1.0")
    with pytest.raises(FetchError, match="absent"):
        Jgo(repositories={"test": repository}).fetch("core", [JAR, missing], tmp_path)


def test_jgo_ends_when_it_is_told_to(repository: str, tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(FetchError, match="was stopped"):
        Jgo(stop, {"test": repository}).fetch("core", [JAR], tmp_path)
    assert not (tmp_path / "thing-1.0.jar").exists()


def _mvn(folder: Path, script: str) -> Path:
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_maven_is_used_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_fetcher().name == "jgo"
    _mvn(tmp_path, "exit 0")
    assert choose_fetcher().name == "mvn"


def test_what_maven_says_is_told(tmp_path: Path) -> None:
    program = _mvn(
        tmp_path, "echo '[INFO] on its way'; echo '[ERROR] no such host -> [Help 1]'; exit 1"
    )
    with pytest.raises(FetchError, match=r"^no such host$"):
        Mvn(program).fetch("core", [], tmp_path)
    with pytest.raises(OSError, match="No space left"):
        Mvn(_mvn(tmp_path, "echo 'No space left on device'; exit 1")).fetch("core", [], tmp_path)
    with pytest.raises(FetchError):
        Mvn(tmp_path / "absent").fetch("core", [], tmp_path)


async def test_a_signal_during_the_first_fetch_ends_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, started = tmp_path / "bin", tmp_path / "started"
    programs.mkdir()
    # Its child holds the pipe, as Maven's Java would.
    _mvn(programs, f"sleep 600 &\necho $! > {started}.new; mv {started}.new {started}; wait")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("STREAMS_CACHE", str(tmp_path / "cache"))
    stack = Stack(tmp_path / "stack", roles={})
    running = asyncio.create_task(run_until_signal(stack, lambda _: None))
    await until(started.exists, within_s=30)
    child = psutil.Process(int(started.read_text()))
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
    await running
    await until(lambda: not list((tmp_path / "cache").glob(".core-*")), within_s=10)
    assert time.monotonic() - began < 10
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_waiting_for_another_process_that_fetches_ends_too(tmp_path: Path) -> None:
    begun, stop, release = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def fetch(self, *_: object) -> None:
            begun.set()
            release.wait(30)
            raise FetchError("gave up")

    def first() -> None:
        with pytest.raises(JarsUnavailable):
            provide_jars("core", cache=tmp_path, say=print, fetcher=Slow())

    holding = threading.Thread(target=first)
    holding.start()
    begun.wait(10)
    stop.set()
    with pytest.raises(JarsUnavailable, match="was stopped"):
        provide_jars("core", cache=tmp_path, say=print, fetcher=Slow(), stop=stop)
    release.set()
    holding.join()
