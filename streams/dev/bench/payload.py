"""Benchmark of payloads, large and small, against a raw S3 client and a file copy."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from streams.app import open_shelves
from streams.dev.bench.large_result import has_roles, move_result
from streams.dev.bench.report import BenchReport, Figure
from streams.dev.bench.s3 import s3_client
from streams.payload.port import JSON, Scope
from streams.payload.store import ContentStore
from streams.settings import Settings

AT_ONCE = 8
SMALL_BYTES = 2000
_SAME_BYTES = 1 << 20


async def bench_payload(
    settings: Settings,
    folder: Path,
    *,
    megabytes: int,
    small: int,
    same: int,
    say: Callable[[str], None],
) -> BenchReport:
    """Run the bench; created objects are removed.

    If a stack with roles runs in `folder`, a result is sent through them, too.
    """
    if settings.payload_store.connection.endpoint is None:
        raise ValueError("this bench needs an S3 server with an endpoint, such as the stack's own")
    say(f"two payloads of {megabytes} MB, one of them highly compressible, in a child process")
    moved = await asyncio.to_thread(_moved, settings, megabytes)
    raw = await asyncio.to_thread(_raw_large, settings, folder, megabytes)
    whole: dict[str, Figure] = {}
    if has_roles(folder):
        say(f"one result of {megabytes} MB, from a worker's download to the API's response")
        whole = await move_result(settings, folder, megabytes)
    say(f"{small} payloads of {SMALL_BYTES} bytes, {AT_ONCE} at a time")
    rates = await _small(settings, small)
    rates |= await asyncio.to_thread(_raw_small, settings, small)
    say(f"{same} times the same megabyte")
    shared = await _same(settings, same)
    put, get = megabytes / moved["put_s"], megabytes / moved["get_s"]
    figures: dict[str, Figure] = {
        "put_mb_per_s": round(put, 1),
        "get_mb_per_s": round(get, 1),
        "raw_put_mb_per_s": round(raw["put"], 1),
        "raw_get_mb_per_s": round(raw["get"], 1),
        "file_copy_mb_per_s": round(raw["copy"], 1),
        "ratio_put_to_raw": round(put / raw["put"], 2),
        "ratio_get_to_raw": round(get / raw["get"], 2),
        **{name: round(rate, 1) for name, rate in rates.items()},
        "ratio_small_puts_to_raw": round(rates["small_puts_per_s"] / rates["raw_puts_per_s"], 2),
        **shared,
        **whole,
        "megabytes": megabytes,
        "peak_rss_mb": moved["peak_rss_mb"],
    }
    faults = []
    if shared["objects_of_same"] != 1:
        faults.append(f"{same} puts of the same bytes created {shared['objects_of_same']} objects")
    return BenchReport(figures=figures, faults=tuple(faults))


def _moved(settings: Settings, megabytes: int) -> dict[str, float]:
    asked = {"settings": {"payload_store": _plain(settings)}, "megabytes": megabytes}
    command = [sys.executable, "-m", "streams.dev.bench.payload_process"]
    done = subprocess.run(command, input=orjson.dumps(asked), capture_output=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"the child exited with {done.returncode}: {done.stderr.decode()[-500:]}")
    answer: dict[str, float] = orjson.loads(done.stdout)
    return answer


def _plain(settings: Settings) -> dict[str, Any]:
    """Return the store's settings with secrets, for the child's standard input."""
    chosen = settings.payload_store.model_dump(mode="json", exclude={"connection"})
    place = settings.payload_store.connection
    connection = place.model_dump(mode="json", exclude={"access_key", "secret_key"})
    for name in ("access_key", "secret_key"):
        if (secret := getattr(place, name)) is not None:
            connection[name] = secret.get_secret_value()
    return {**chosen, "connection": connection}


def _raw_large(settings: Settings, folder: Path, megabytes: int) -> dict[str, float]:
    """Move a file of the same size with boto3, and copy it on the disk."""
    client, bucket = s3_client(settings), settings.payload_store.connection.bucket
    key = f"bench/raw-{uuid4().hex}/sha256/x"
    with tempfile.TemporaryDirectory(prefix="streams-bench-", dir=folder) as name:
        source, target = Path(name, "source"), Path(name, "target")
        with source.open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 19) + bytes(1 << 19))
        try:
            put = _seconds(lambda: client.upload_file(str(source), bucket, key))
            get = _seconds(lambda: client.download_file(bucket, key, str(target)))
        finally:
            client.delete_object(Bucket=bucket, Key=key)
            client.close()
        copy = _seconds(lambda: _copied(source, target))
    return {"put": megabytes / put, "get": megabytes / get, "copy": megabytes / copy}


def _copied(source: Path, target: Path) -> None:
    with source.open("rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())


async def _small(settings: Settings, count: int) -> dict[str, float]:
    scope = Scope("bench", f"small-{uuid4().hex}")
    contents = iter([os.urandom(SMALL_BYTES) for _ in range(count)])
    async with open_shelves(settings) as shelves:
        store = ContentStore(shelves, compression="zstd")
        refs = []

        async def put() -> None:
            for content in contents:
                refs.append(await store.put(scope, content, media_type=JSON))

        began = time.perf_counter()
        await asyncio.gather(*(put() for _ in range(AT_ONCE)))
        stored = time.perf_counter()
        waiting = iter(refs)

        async def get() -> None:
            for ref in waiting:
                await store.get(ref)

        await asyncio.gather(*(get() for _ in range(AT_ONCE)))
        read = time.perf_counter()
        for ref in refs:
            await store.delete(ref)
    return {
        "small_puts_per_s": count / (stored - began),
        "small_gets_per_s": count / (read - stored),
    }


def _raw_small(settings: Settings, count: int) -> dict[str, float]:
    client, bucket = s3_client(settings), settings.payload_store.connection.bucket
    keys = [f"bench/raw-{uuid4().hex}/sha256/{number}" for number in range(count)]
    body = os.urandom(SMALL_BYTES)
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            began = time.perf_counter()
            list(pool.map(lambda key: client.put_object(Bucket=bucket, Key=key, Body=body), keys))
            seconds = time.perf_counter() - began
            list(pool.map(lambda key: client.delete_object(Bucket=bucket, Key=key), keys))
    finally:
        client.close()
    return {"raw_puts_per_s": count / seconds}


async def _same(settings: Settings, count: int) -> dict[str, float]:
    """Put the same bytes repeatedly through independent stores."""
    scope, content = Scope("bench", f"same-{uuid4().hex}"), os.urandom(_SAME_BYTES)
    async with open_shelves(settings) as shelves:
        stores = [ContentStore(shelves, compression="zstd") for _ in range(4)]
        began = time.perf_counter()
        refs = set()
        for number in range(count):
            refs.add(await stores[number % 4].put(scope, content, media_type=JSON))
        seconds = time.perf_counter() - began
        objects = [stat async for stat in shelves.list(f"bench/{scope.organization_id}/")]
        for ref in refs:
            await stores[0].delete(ref)
    return {"same_puts_per_s": round(count / seconds, 1), "objects_of_same": len(objects)}


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
