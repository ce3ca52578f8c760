"""The reader of crates/reader, built when its sources have changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).parents[3]
CRATE = ROOT / "crates" / "reader"
TARGET = Path(os.environ.get("READER_TARGET_DIR", ROOT / ".venv" / "cargo-reader"))
"""Where cargo builds; the Makefile uses the same folder."""


def cargo(*arguments: str) -> str:
    """Run cargo on the crate; return what it printed. Without cargo, the test is skipped."""
    program = shutil.which("cargo")
    if program is None:
        pytest.skip("cargo is not installed, and the reader is written in Rust")
    command = [program, *arguments, "--release", "--locked", "--quiet"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
    done = subprocess.run(command, cwd=CRATE, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@lru_cache(maxsize=1)
def built() -> Path:
    """Return the program."""
    cargo("build")
    return TARGET / "release" / "reader"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the reader."""
    return subprocess.run([built(), *map(str, arguments)], capture_output=True, text=True)


def answer(*arguments: str | Path) -> dict[str, object]:
    """Return the JSON that the reader prints."""
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = orjson.loads(done.stdout)
    return found
