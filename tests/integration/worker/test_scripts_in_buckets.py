"""Scripts of tasks in buckets: the clients of S3 and Google on a server of their protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from streams.playbook.spelling import Spelling
from streams.worker.errors import TargetUnavailable
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.python.tool import PythonTool
from streams.worker.tools.script import Scripts
from tests.support.payload.buckets import Bucket, open_bucket
from tests.support.worker.tool_calls import CALL

CODE = 'result = {"greeting": f"hello {name}", "count": count + 1}\n'
NOETL = replace(CALL, spelling=Spelling.NOETL)


@pytest.fixture(scope="module")
async def bucket(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bucket]:
    async with open_bucket(tmp_path_factory.mktemp("served")) as opened:
        (opened.folder / "scripts").mkdir()
        (opened.folder / "scripts" / "hello.py").write_text(CODE)
        yield opened


async def run(bucket: Bucket, kind: str, uri: str, auth: str = "own") -> Outcome:
    place = {"endpoint": bucket.endpoint}
    own: dict[str, dict[str, str]] = {
        "s3": {**place, "access_key": "a", "secret_key": "b"},
        "gcs": {**place, "service_account_key": "none"},
    }
    json = {**place, "service_account_json": bucket.google_key}
    away = {**own[kind], "endpoint": "http://127.0.0.1:9"}
    logins = {"own": own[kind], "json": json, "away": away}
    tool = PythonTool(scripts=Scripts(ConfiguredCredentials(logins, {})))
    script = {"uri": uri, "source": {"type": kind, "auth": auth}}
    config: dict[str, Any] = {"script": script, "input": {"name": "you", "count": 1}}
    try:
        return await tool.run(config, NOETL)
    finally:
        await tool.close()


@pytest.mark.parametrize(
    ("kind", "uri", "auth"),
    [
        ("gcs", "gs://bucket/scripts/hello.py", "own"),
        ("gcs", "gs://bucket/scripts/hello.py", "json"),
        ("s3", "s3://bucket/scripts/hello.py", "own"),
    ],
)
async def test_a_script_in_a_bucket_runs(bucket: Bucket, kind: str, uri: str, auth: str) -> None:
    outcome = await run(bucket, kind, uri, auth)
    assert outcome.status == "success", outcome.error
    assert outcome.data == {"greeting": "hello you", "count": 2}


@pytest.mark.parametrize("kind", ["gcs", "s3"])
async def test_a_script_that_is_not_there_fails_the_task(bucket: Bucket, kind: str) -> None:
    scheme = "gs" if kind == "gcs" else "s3"
    outcome = await run(bucket, kind, f"{scheme}://bucket/none.py")
    assert outcome.error is not None
    assert outcome.error["kind"] == "python.config"
    assert f"{scheme}://bucket/none.py does not exist" in str(outcome.error["message"])
    with pytest.raises(TargetUnavailable):
        await run(bucket, kind, f"{scheme}://bucket/none.py", "away")
