"""Imports that only some files may have: Faust, and what a core does without."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAUST_FILES = {"streams/kafka/feed/agent.py", "streams/planner/tables.py"}
"""The shell and the tables."""
NOT_IN_CORE = {
    "aioboto3",
    "aiohttp",
    "aiokafka",
    "asyncio",
    "asyncpg",
    "boto3",
    "botocore",
    "confluent_kafka",
    "faust",
    "obstore",
    "streams.clock",
    "streams.postgres",
    "streams.retry",
    "time",
}


def imports(text: str) -> set[str]:
    """Return every module that a text imports, wherever in it, with the packages above it."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found |= {one.name for one in names}
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module, *(f"{module}.{one.name}" for one in names)}
    parts = [name.split(".") for name in found]
    return {".".join(one[:length]) for one in parts for length in range(1, len(one) + 1)}


def of(path: Path) -> set[str]:
    return imports(path.read_text("utf-8"))


def cores() -> list[Path]:
    package = ROOT / "streams"
    return sorted([*package.rglob("core.py"), *(package / "execution").rglob("*.py")])


def test_only_the_shell_and_the_tables_import_faust() -> None:
    paths = (ROOT / "streams").rglob("*.py")
    users = {path.relative_to(ROOT).as_posix() for path in paths if "faust" in of(path)}
    assert users <= FAUST_FILES


@pytest.mark.parametrize("path", cores(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_core_imports_no_driver_clock_or_event_loop(path: Path) -> None:
    assert of(path) & NOT_IN_CORE == set()


@pytest.mark.parametrize(
    "text",
    [
        "import asyncpg",
        "import aiokafka.errors",
        "from time import monotonic",
        "from streams import clock",
        "def late():\n    from asyncio import sleep",
    ],
)
def test_the_rule_sees_every_way_to_import(text: str) -> None:
    assert imports(text) & NOT_IN_CORE
