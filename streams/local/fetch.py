"""Download of files by Maven coordinates, with `mvn` if installed, else with jgo."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Protocol

from streams.local.disk_space import is_full
from streams.local.pom import POM, Coordinate
from streams.local.process import die_with_parent

_MVN_SECONDS = 900
_POLL_SECONDS = 0.2
_STOPPED = "this process was stopped"
_NO_ROOM = "No space left on device"
# In full: resolving the short name needs the network, and its error is unclear.
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class FetchError(Exception):
    """A fetcher could not download every file; the text has the reason."""


class Fetcher(Protocol):
    """Downloads a profile's files into a folder, under their Maven names."""

    @property
    def name(self) -> str: ...

    def fetch(self, profile: str, coordinates: Sequence[Coordinate], target: Path) -> None:
        """Fetch every file of `coordinates` into `target`.

        Raises:
            FetchError: a file could not be downloaded.
            OSError: ENOSPC, if the disk is full.
        """
        ...


def choose_fetcher(pom: Path = POM, stop: Event | None = None) -> Fetcher:
    """Return Maven if installed, since it has the user's mirrors and proxies; else jgo."""
    program = shutil.which("mvn")
    return Mvn(Path(program), pom, stop) if program else Jgo(stop)


class Mvn:
    """Fetches with the Maven command."""

    name = "mvn"

    def __init__(self, program: Path, pom: Path = POM, stop: Event | None = None) -> None:
        self._program, self._pom, self._stop = program, pom, stop or Event()

    def fetch(self, profile: str, coordinates: Sequence[Coordinate], target: Path) -> None:
        command = [
            str(self._program),
            "--batch-mode",
            "--quiet",
            "--file",
            str(self._pom),
            "--activate-profiles",
        ]
        command += [profile, _COPY, f"-DoutputDirectory={target}"]
        code, output = self._run(command)
        if code != 0:
            if _NO_ROOM in output:
                raise OSError(errno.ENOSPC, _NO_ROOM)
            raise FetchError(_first_error(output))

    def _run(self, command: list[str]) -> tuple[int, str]:
        """Return Maven's exit code and output; kill it when `stop` is set."""
        deadline = time.monotonic() + _MVN_SECONDS
        try:
            maven = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - only calls prctl
            )
        except OSError as error:
            raise FetchError(str(error)) from error
        while True:
            try:
                output, _ = maven.communicate(timeout=_POLL_SECONDS)
                return maven.returncode, output
            except subprocess.TimeoutExpired:
                if not self._stop.is_set() and time.monotonic() < deadline:
                    continue
            # Its Java child would keep the pipe open.
            os.killpg(maven.pid, signal.SIGKILL)
            maven.communicate()
            raise FetchError(_STOPPED if self._stop.is_set() else f"not done in {_MVN_SECONDS} s")


def _first_error(output: str) -> str:
    """Return the first error line of Maven's output."""
    lines = [line for line in output.splitlines() if "[ERROR]" in line]
    text = lines[0].split("[ERROR]")[1] if lines else output[-300:]
    return text.partition("-> [Help")[0].strip()


class Jgo:
    """Fetches with jgo's downloader, which needs neither Maven nor Java."""

    name = "jgo"

    def __init__(
        self, stop: Event | None = None, repositories: Mapping[str, str] | None = None
    ) -> None:
        """`repositories` are URLs by name; the default is Maven Central."""
        self._stop = stop or Event()
        self._repositories = None if repositories is None else dict(repositories)

    def fetch(self, profile: str, coordinates: Sequence[Coordinate], target: Path) -> None:
        from jgo.maven import MavenContext

        # A private repository: jgo writes in place, so a killed process would leave a partial
        # file in a shared one.
        context = MavenContext(repo_cache=target / ".repository", remote_repos=self._repositories)

        def bring(coordinate: Coordinate) -> None:
            if self._stop.is_set():
                raise RuntimeError(_STOPPED)
            component = context.project(coordinate.group, coordinate.artifact).at_version(
                coordinate.version
            )
            found = component.artifact(coordinate.classifier, coordinate.type).resolve()
            Path(found).rename(target / coordinate.file_name)

        try:
            with ThreadPoolExecutor(max_workers=4) as pool:
                list(pool.map(bring, coordinates))
        except (OSError, RuntimeError) as error:
            if is_full(error):
                raise
            raise FetchError(str(error)) from error
