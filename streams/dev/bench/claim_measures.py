"""Measurements of the claims: benches, the simulator, the acceptance tests."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from streams.dev.bench.prove import Figures, Measure
from streams.dev.simulator.plants import PLANTS


def _streams(*arguments: str, timeout_s: float = 1800) -> str:
    command = [sys.executable, "-m", "streams", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        output = (done.stdout.strip() or done.stderr.strip())[-500:]
        raise ValueError(f"streams {' '.join(arguments)} ended with {done.returncode}: {output}")
    return done.stdout


def bench(name: str, *options: str) -> Measure:
    """Return the measurement that `streams bench` makes."""
    return lambda: figures_of(json.loads(_streams("bench", name, *options, "--json")))


def figures_of(found: Mapping[str, object], before: str = "") -> dict[str, float]:
    """Return the numbers in a bench report, nested ones with their names joined."""
    figures: dict[str, float] = {}
    for name, value in found.items():
        if isinstance(value, Mapping):
            figures |= figures_of(value, f"{before}{name} ")
        elif isinstance(value, (int, float)):
            figures[before + name] = value
    return figures


def second_start() -> Figures:
    """Start a stack twice in one folder."""
    with tempfile.TemporaryDirectory(prefix="streams-prove-", dir=Path.cwd()) as folder:
        seconds = []
        for _ in range(2):
            started = time.monotonic()
            _streams("up", "--detach", "--data", folder)
            seconds.append(round(time.monotonic() - started, 1))
            _streams("down", "--data", folder)
    return {"first_up_s": seconds[0], "second_up_s": seconds[1]}


def simulated() -> Figures:
    """Run the simulator, also with each planted bug."""
    whole = json.loads(_streams("simulate", "--seeds", "2000", "--json", timeout_s=7200))
    figures = {"seeds": whole["seeds"], "records": whole["steps"]}
    figures |= {"faults": sum(whole["faults"].values()), "failures": len(whole["failures"])}
    for bug in PLANTS:
        found = json.loads(_streams("simulate", "--seeds", "2000", "--plant", bug, "--json"))
        figures[f"{bug} shows after"] = found["seeds"]
    return figures


def acceptance() -> Figures:
    """Run the acceptance tests."""
    command = [sys.executable, "-m", "pytest", "tests/acceptance"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    counts = pytest_counts(done.stdout)
    if done.returncode not in (0, 1) or not counts["passed"] + counts["failed"]:
        raise ValueError(f"pytest ended with {done.returncode}: {done.stdout.strip()[-300:]}")
    return counts


def pytest_counts(output: str) -> dict[str, int]:
    """Read the last line of pytest; an error is a failure."""
    words = output.strip().rsplit("\n", 1)[-1].replace(",", "").split()
    found = {word: int(number) for number, word in pairwise(words) if number.isdigit()}
    failed = sum(found.get(word, 0) for word in ("failed", "error", "errors"))
    return {"passed": found.get("passed", 0), "failed": failed, "skipped": found.get("skipped", 0)}
