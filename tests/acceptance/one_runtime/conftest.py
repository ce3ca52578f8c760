"""One runtime for every story that leaves it whole: starting another takes half a minute.

Its roles find `tests/planted` on their path: a function that expressions may call, and what
lets a planner die of a playbook. Parts may be killed, since they come back.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.servers.runtime import Runtime, kept_runtime, whole_runtime

PLANTED = Path(__file__).parents[2] / "planted"
# Longer than a killed worker needs to be back, short enough to be outlived in a test.
LEASE = {"STREAMS__FRAMES__LEASE_SECONDS": "30", "STREAMS__FRAMES__HEARTBEAT_SECONDS": "10"}


@pytest.fixture(scope="package")
def poison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that names the playbook of which a planner dies, while it is there."""
    return tmp_path_factory.mktemp("poison") / "path"


@pytest.fixture(scope="package")
def file_stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of projections that are stored in files."""
    folder = tmp_path_factory.mktemp("projections")
    stores = {
        "ANALYTICS": ("columnar-analytics", f"duckdb:{folder / 'analytics.duckdb'}", "DUCKDB"),
        "KEYED": ("key-value", f"rocksdb:{folder / 'keyed'}", "ROCKSDB"),
    }
    found = {}
    for name, (backend, dsn, engine) in stores.items():
        found[f"STREAMS__PROJECTION_STORES__{name}__BACKEND"] = backend
        found[f"STREAMS__PROJECTION_STORES__{name}__CONNECTION__DSN"] = dsn
        found[f"STREAMS__MATERIALIZATIONS__NUMBERS_IN_{engine}__STORE"] = name.lower()
    return found


@pytest.fixture(scope="package")
async def own_runtime(
    tmp_path_factory: pytest.TempPathFactory, poison: Path, file_stores: dict[str, str]
) -> AsyncIterator[Runtime]:
    """A stack with every role that only this run uses; what is planted is there."""
    found = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(PLANTED), *([found] if found else [])])
    planted = {"PYTHONPATH": path, "STREAMS_TEST_POISON": str(poison)}
    environment = {**LEASE, **file_stores, **planted}
    async with whole_runtime(tmp_path_factory.mktemp("whole"), environment) as made:
        yield made


@pytest.fixture(scope="package")
async def _kept_runtime() -> AsyncIterator[Runtime]:
    async with kept_runtime(Path(os.environ["STREAMS_TEST_DATA"])) as found:
        yield found


@pytest.fixture(scope="package")
def runtime(request: pytest.FixtureRequest) -> Runtime:
    """A stack with every role: the one that STREAMS_TEST_DATA names, else this run's own."""
    is_kept = "STREAMS_TEST_DATA" in os.environ
    found: Runtime = request.getfixturevalue("_kept_runtime" if is_kept else "own_runtime")
    return found
