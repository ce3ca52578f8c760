"""Sinks to buckets: S3 of the stack, and Google's client on a server of its protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import obstore
import orjson
import pytest
from obstore.store import S3Store

from streams.settings import Settings
from streams.worker.sinks.object_store import S3Driver
from streams.worker.sinks.port import SinkEnvironment, SinkJob
from streams.worker.tools.credentials import ConfiguredCredentials
from tests.support.payload.buckets import open_bucket
from tests.support.worker.sinks import Sinks, call, kind


@pytest.mark.stack
async def test_s3_objects_are_put_under_a_name_that_every_attempt_has(
    settings: Settings, tmp_path: Path
) -> None:
    found = settings.payload_store.connection
    assert found.access_key is not None
    assert found.secret_key is not None
    login = {
        "endpoint": str(found.endpoint),
        "bucket": found.bucket,
        "access_key": found.access_key.get_secret_value(),
        "secret_key": found.secret_key.get_secret_value(),
    }
    sinks = Sinks(tmp_path, {"s3": login})
    store = S3Store(
        found.bucket,
        endpoint=login["endpoint"],
        access_key_id=login["access_key"],
        secret_access_key=login["secret_key"],
        region="us-east-1",
        client_options={"allow_http": True},
    )
    place = f"sinks/{id(sinks)}"
    block = {"storage": "s3", "auth": "s3", "format": "csv", "data": "{{ result }}"}
    rows = [{"a": n} for n in range(5)]
    try:
        named = {**block, "spec": {"key": f"{place}/x.csv"}}
        reference = await sinks.twice(named, result={"a": 1})
        parted = {**block, "spec": {"path": f"{place}/y"}, "mode": "append"}
        parted |= {"chunk_size": 2, "concurrency": 2}
        assert (await sinks.twice(parted, result=rows))["range"] == "parts:3"
        one = await obstore.get_async(store, f"{place}/x.csv")
        assert bytes(await one.bytes_async()) == b"a\n1\n"
        listed = [
            item["path"]
            for page in [obstore.list(store, f"{place}/y")]
            for part in page
            for item in part
        ]
        assert len(listed) == 3
        bad = await sinks.once({**block, "spec": {"key": "{{ result }}"}}, result="../x")
        assert kind(bad) == "s3.config"
    finally:
        await sinks.tool.close()
    assert reference["key"] == f"s3://{found.bucket}/{place}/x.csv"


async def test_gcs_objects_are_put_under_a_name_that_every_attempt_has(tmp_path: Path) -> None:
    async with open_bucket(tmp_path / "served") as bucket:
        # Without a key the client would ask the machine it runs on for its identity.
        login = {"service_account_key": "none", "endpoint": bucket.endpoint, "bucket": bucket.name}
        sinks = Sinks(tmp_path, {"gcs": login})
        block = {"storage": "gcs", "auth": "gcs", "data": "{{ result }}"}
        try:
            reference = await sinks.twice({**block, "spec": {"prefix": "reports"}}, result={"a": 1})
            parted = {**block, "spec": {"key": "y"}, "mode": "append", "chunk_size": 2}
            await sinks.twice(parted, result=[1, 2, 3])
            nowhere = await sinks.once({**block, "spec": {"bucket": "nowhere"}}, result=1)
        finally:
            await sinks.tool.close()
        assert reference["key"].startswith(f"gs://{bucket.name}/reports/7/load/sink-")
        [report] = bucket.files("reports")
        assert orjson.loads(report.read_bytes()) == {"a": 1}
        assert [one.read_text() for one in bucket.files("y")] == ["[1,2]", "[3]"]
    assert kind(nowhere) == "gcs.notfound"
    assert "bucket 'nowhere' does not exist" in str(nowhere.error)


async def test_parts_that_a_longer_list_left_are_removed(tmp_path: Path) -> None:
    async with open_bucket(tmp_path / "served") as bucket:
        login = {"service_account_key": "none", "endpoint": bucket.endpoint, "bucket": bucket.name}
        sinks = Sinks(tmp_path, {"gcs": login})
        block = {"storage": "gcs", "auth": "gcs", "spec": {"key": "a/b.json"}, "chunk_size": 2}
        block |= {"concurrency": 2, "data": "{{ result }}"}
        try:
            for result, count in ((list(range(8)), 4), ([1, 2, 3], 2), ([1], 1)):
                reference = await sinks.twice(block, result=result)
                assert reference["range"] == f"parts:{count}"
                names = [one.name for one in bucket.files("a")]
                assert names == [f"b-{n:05}.json" for n in range(count)]
        finally:
            await sinks.tool.close()


async def test_objects_are_put_at_the_same_time_as_many_as_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, now, most = obstore.put_async, 0, 0

    async def counted(*given: Any, **named: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await put(*given, **named)
        finally:
            now -= 1

    monkeypatch.setattr(obstore, "put_async", counted)
    async with open_bucket(tmp_path / "served") as bucket:
        login = {"service_account_key": "none", "endpoint": bucket.endpoint, "bucket": bucket.name}
        sinks = Sinks(tmp_path, {"gcs": login})
        block = {"storage": "gcs", "auth": "gcs", "spec": {"key": "y"}, "batch": False}
        try:
            await sinks.twice({**block, "concurrency": 3, "data": list(range(12))})
        finally:
            await sinks.tool.close()
        assert len(bucket.files("")) == 12
    assert most == 3


def test_what_a_spec_says_of_a_store_tells_it_from_others() -> None:
    driver = S3Driver(
        SinkEnvironment(credentials=ConfiguredCredentials({}, {}), deployment="t", folder=None)
    )

    def store(**spec: str) -> Any:
        job = SinkJob(storage="s3", mode="overwrite", call=call(), spec={"bucket": "b", **spec})
        return driver._config(job)

    first = store(region="eu-west-1", key="a")
    assert store(region="eu-west-1", key="b") == first
    assert store(region="eu-west-2") != first
    assert store(region="eu-west-1", access_key="k", secret_key="s") != first
