"""Sinks that need no credential, with a folder of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.worker.sinks import Sinks


@pytest.fixture
async def sinks(tmp_path: Path) -> AsyncIterator[Sinks]:
    made = Sinks(tmp_path)
    yield made
    await made.tool.close()
