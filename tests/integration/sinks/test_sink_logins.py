"""The logins of sinks are not kept where they could be read."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from streams.worker.errors import TargetUnavailable
from streams.worker.sinks.clients import Clients
from tests.support.worker.sinks import Sinks


@pytest.mark.parametrize(
    ("storage", "login", "block"),
    [
        ("kv", {"url": "redis://:c4nary-1@127.0.0.1:9"}, {"data": {"key": "a", "value": 1}}),
        (
            "graph",
            {"url": "bolt://127.0.0.1:9", "user": "a", "password": "c4nary-1"},
            {"statement": "MERGE (n)"},
        ),
        (
            "s3",
            {"endpoint": "http://127.0.0.1:9", "access_key": "a", "secret_key": "c4nary-1"},
            {"data": 1, "spec": {"bucket": "b", "timeout": 0.2}},
        ),
    ],
)
async def test_no_driver_has_a_secret_among_its_own_things(
    storage: str, login: dict[str, str], block: dict[str, Any], tmp_path: Path
) -> None:
    sinks = Sinks(tmp_path, {"own": login})
    with suppress(TargetUnavailable):
        outcome = await sinks.once({"storage": storage, "auth": "own", **block})
        assert outcome.status == "error"
    [driver] = sinks.tool._drivers.values()
    kept: Any = [one for one in vars(driver).values() if isinstance(one, Clients)]
    assert len(kept[0]._open) == 1
    assert "c4nary" not in repr(list(kept[0]._open))
    await sinks.tool.close()
