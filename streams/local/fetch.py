"""Fetching files by Maven coordinates: with `mvn` where installed, with jgo where not."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from streams.local.pom import POM, Coordinate
from streams.local.process import die_with_parent
from streams.local.room import is_full

_MVN_SECONDS = 900
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


def choose_fetcher(pom: Path = POM) -> Fetcher:
    """Prefer an installed Maven: it knows the user's mirrors and proxies."""
    program = shutil.which("mvn")
    return Mvn(Path(program), pom) if program else Jgo()


class Mvn:
    """Fetches with Maven's own command."""

    name = "mvn"

    def __init__(self, program: Path, pom: Path = POM) -> None:
        self._program, self._pom = program, pom

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
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                timeout=_MVN_SECONDS,
                preexec_fn=die_with_parent(),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FetchError(str(error)) from error
        if done.returncode != 0:
            said = done.stdout + done.stderr
            if _NO_ROOM in said:
                raise OSError(errno.ENOSPC, _NO_ROOM)
            raise FetchError(_first_error(said))


def _first_error(output: str) -> str:
    """Pick the line of Maven's output that says what was wrong."""
    lines = [line for line in output.splitlines() if "[ERROR]" in line]
    text = lines[0].split("[ERROR]")[1] if lines else output[-300:]
    return text.partition("-> [Help")[0].strip()


class Jgo:
    """Fetches with jgo's downloader, which needs neither Maven nor Java."""

    name = "jgo"

    def fetch(self, profile: str, coordinates: Sequence[Coordinate], target: Path) -> None:
        from jgo.maven import MavenContext

        # A repository of its own: jgo writes straight into place, so a shared one could be
        # left with half a file by a process that was killed.
        context = MavenContext(repo_cache=target / ".repository")

        def bring(coordinate: Coordinate) -> None:
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
