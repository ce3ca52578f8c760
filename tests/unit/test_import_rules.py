"""Imports that only some files may have: Faust, and what a core does without."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAUST_FILES = ("streams/kafka/transport/", "streams/dev/bench/stock_faust.py")
"""The transport, with its applications and tables; and the baseline of a bench."""
PLANNER = {
    *("core", "draft", "items", "leases", "limits", "scope", "stage_closing", "stage_opening"),
    *("stages", "steps", "windows"),
}
"""The planner's pure files."""
LAG = {"backlog", "commit_records", "evaluation", "meaning", "model", "waterfall"}
"""The pure files of lag, besides its core."""
PURE = {"planner": PLANNER, "lag": LAG}
STACK_USERS = {"__init__", "__main__", "apps", "cli", "dev", "local"}
NOT_IN_CORE = {
    *("aioboto3", "aiohttp", "aiokafka", "asyncpg", "boto3", "botocore", "confluent_kafka"),
    *(
        "duckdb",
        "faust",
        "google",
        "kubernetes",
        "nats",
        "ladybug",
        "neo4j",
        "obstore",
        "pyreqwest",
        "redis",
    ),
    *("rocksdict", "snowflake"),
    *("asyncio", "concurrent", "multiprocessing", "os", "random", "secrets", "socket"),
    *("subprocess", "threading", "time", "urllib"),
    *("streams.clock", "streams.postgres", "streams.retry"),
}
CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}


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


@cache
def of(path: Path) -> set[str]:
    return imports(path.read_text("utf-8"))


def cores() -> list[Path]:
    package = ROOT / "streams"
    pure = {package / room / f"{name}.py" for room, names in PURE.items() for name in names}
    return sorted({*package.rglob("core.py"), *(package / "execution").rglob("*.py"), *pure})


def clock_reads(text: str) -> list[str]:
    """Return every use of a class method that reads the clock, such as `datetime.now`."""
    attributes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    names = [ast.unparse(node) for node in attributes]
    return [name for name in names if ".".join(name.split(".")[-2:]) in CLOCKS]


def contracts() -> dict[str, dict[str, list[str]]]:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    return {one["name"]: one for one in linter["contracts"]}


def test_only_the_transport_imports_faust() -> None:
    paths = (ROOT / "streams").rglob("*.py")
    users = {path.relative_to(ROOT).as_posix() for path in paths if "faust" in of(path)}
    assert users
    assert {path for path in users if not path.startswith(FAUST_FILES)} == set()


@pytest.mark.parametrize("path", cores(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_core_imports_no_driver_clock_or_event_loop(path: Path) -> None:
    assert of(path) & NOT_IN_CORE == set()


@pytest.mark.parametrize("path", cores(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_core_does_not_read_the_time(path: Path) -> None:
    assert clock_reads(path.read_text("utf-8")) == []


def test_import_linter_checks_the_same_cores() -> None:
    contract = contracts()["No driver, clock or event loop in a core"]
    planner, lag = ({f"streams.{room}.{x}" for x in its} for room, its in PURE.items())
    modules = {"streams.*.core", "streams.execution", *planner, *lag}
    assert {*contract["source_modules"], "streams.planner.core"} == modules
    assert set(contract["forbidden_modules"]) == NOT_IN_CORE


def test_every_package_but_those_for_users_is_kept_from_the_embedded_stack() -> None:
    contract = contracts()["Production code does not import the embedded stack"]
    found = {path.stem for path in (ROOT / "streams").iterdir() if path.suffix in ("", ".py")}
    found = {name for name in found if not name.startswith(("_", "."))} - STACK_USERS
    assert set(contract["source_modules"]) == {f"streams.{name}" for name in found}


@pytest.mark.parametrize(
    "text",
    [
        "import asyncpg",
        "import aiokafka.errors",
        "from time import monotonic",
        "from streams import clock",
        "def late():\n    from asyncio import sleep",
        "from urllib.parse import quote",
        "import os.path",
    ],
)
def test_the_rule_sees_every_way_to_import(text: str) -> None:
    assert imports(text) & NOT_IN_CORE


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import UTC, datetime\nx = datetime.now(UTC)",
        "import datetime\nx = datetime.datetime.utcnow()",
        "from datetime import datetime\nfield(default_factory=datetime.now)",
    ],
)
def test_the_rule_sees_every_way_to_read_the_time(text: str) -> None:
    assert clock_reads(text)
