"""Fetching files by Maven coordinates: with `mvn` where installed, with jgo where not."""

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
_LOOK_SECONDS = 0.2
_ENDED = "we were asked to end"
_NO_ROOM = "No space left on device"
# In full: looking up the short name needs the network, and its failure says little.
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class FetchError(Exception):
    """A fetcher could not bring every file; the text says why."""


class Fetcher(Protocol):
    """Brings a profile's files into a folder, under the names Maven gives them."""

    @property
    def name(self) -> str: ...

    def fetch(self, profile: str, coordinates: Sequence[Coordinate], target: Path) -> None:
        """Fetch every file of `coordinates` into `target`.

        Raises:
            FetchError: a file could not be had.
            OSError: with the number of a full disk, where there is no room for it.
        """
        ...


def choose_fetcher(pom: Path = POM, stop: Event | None = None) -> Fetcher:
    """Prefer an installed Maven: it knows the user's mirrors and proxies."""
    program = shutil.which("mvn")
    return Mvn(Path(program), pom, stop) if program else Jgo(stop)


class Mvn:
    """Fetches with Maven's own command."""

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
        code, said = self._run(command)
        if code != 0:
            if _NO_ROOM in said:
                raise OSError(errno.ENOSPC, _NO_ROOM)
            raise FetchError(_first_error(said))

    def _run(self, command: list[str]) -> tuple[int, str]:
        """Return how Maven ended and what it said; it ends at once when we are asked to."""
        deadline = time.monotonic() + _MVN_SECONDS
        try:
            maven = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - it only asks the kernel
            )
        except OSError as error:
            raise FetchError(str(error)) from error
        while True:
            try:
                said, _ = maven.communicate(timeout=_LOOK_SECONDS)
                return maven.returncode, said
            except subprocess.TimeoutExpired:
                if not self._stop.is_set() and time.monotonic() < deadline:
                    continue
            # It starts Java, which would hold on to the pipe.
            os.killpg(maven.pid, signal.SIGKILL)
            maven.communicate()
            raise FetchError(_ENDED if self._stop.is_set() else f"not done in {_MVN_SECONDS} s")


def _first_error(output: str) -> str:
    """Pick the line of Maven's output that says what was wrong."""
    lines = [line for line in output.splitlines() if "[ERROR]" in line]
    text = lines[0].split("[ERROR]")[1] if lines else output[-300:]
    return text.partition("-> [Help")[0].strip()


class Jgo:
    """Fetches with jgo's downloader, which needs neither Maven nor Java."""

    name = "jgo"

    def __init__(
        self, stop: Event | None = None, repositories: Mapping[str, str] | None = None
    ) -> None:
        """Without `repositories`, addresses by name, Maven Central is asked."""
        self._stop = stop or Event()
        self._repositories = None if repositories is None else dict(repositories)

    def fetch(self, profile: str, coordinates: Sequence[Coordinate], target: Path) -> None:
        from jgo.maven import MavenContext

        # A repository of its own: jgo writes straight into place, so a shared one could be
        # left with half a file by a process that was killed.
        context = MavenContext(repo_cache=target / ".repository", remote_repos=self._repositories)

        def bring(coordinate: Coordinate) -> None:
            if self._stop.is_set():
                raise RuntimeError(_ENDED)
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
