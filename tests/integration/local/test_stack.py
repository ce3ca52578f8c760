"""The embedded stack as its users meet it: through the command, with real servers and kills.

The tests of this file share one stack and run in order; the last two end it.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import boto3
import psutil
import pytest
from botocore.exceptions import ClientError

from streams.local.state import StackState, find_stack

pytestmark = pytest.mark.stack
STREAMS = Path(sys.executable).with_name("streams")


# What lies in the folder where the commands are given: a deployment's file.
FILE = """\
runtime: {tenant_id: "${STACK_TEST_TENANT}"}
event_store:
  canonical_connection: {host: nowhere.invalid, database: theirs, ssl_mode: require}
  connection: {url: "${STACK_TEST_UNSET}"}
"""


def streams(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(STREAMS), *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=folder,
        env={**os.environ, "STACK_TEST_TENANT": "acme"},
    )


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a stack that is up, below a folder only its owner may enter."""
    private = tmp_path_factory.mktemp("private")
    private.chmod(0o700)
    (private / "streams.yaml").write_text(FILE)
    folder = private / "stäck ✓"
    asked = ("--detach", "--json", "--roles", "api", "--data", str(folder))
    started = streams("up", *asked, folder=private)
    assert started.returncode == 0, started.stderr
    assert json.loads(started.stdout)["phase"] == "ready"
    assert "streams.yaml:3 has other servers" in (folder / "logs/supervisor.log").read_text()
    yield folder
    streams("down", "--data", str(folder))


def up_in(data: Path) -> StackState:
    state = find_stack(data)
    assert state is not None
    return state


def parts_of(data: Path) -> dict[str, dict[str, Any]]:
    status = streams("status", "--json", "--data", str(data))
    return {part["name"]: part for part in json.loads(status.stdout)["parts"]}


def family_of(data: Path) -> list[psutil.Process]:
    """The supervisor and every process below it."""
    supervisor = psutil.Process(up_in(data).supervisor_pid)
    return [supervisor, *supervisor.children(recursive=True)]


def test_status_gives_every_parts_address_process_memory_and_version(data):
    parts = parts_of(data)
    assert set(parts) == {"postgres", "kafka", "connect", "s3", "api-0"}
    for part in parts.values():
        assert part["state"] == "ready"
        assert "127.0.0.1" in part["address"]
        assert part["memory_bytes"] > 2**20
        assert psutil.pid_exists(part["pid"])
    assert parts["postgres"]["version"].startswith("18.")
    assert parts["kafka"]["version"] == "4.3.1"
    assert parts["connect"]["version"] == "4.3.1 (Debezium 3.6.1.Final)"


def test_a_second_up_says_that_it_is_already_up(data):
    second = streams("up", "--detach", "--data", str(data))
    assert second.returncode == 3
    assert "already up" in second.stderr


def test_what_holds_secrets_is_readable_by_its_owner_only(data):
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    for name in ("state.json", "secrets.json", "connect-secrets/noetl_mirror"):
        assert stat.S_IMODE((data / name).stat().st_mode) == 0o600


async def test_postgres_has_the_roles_and_settings_the_mirror_needs(data):
    connection = await asyncpg.connect(up_in(data).postgres.dsn("postgres"))
    try:
        assert await connection.fetchval("SHOW wal_level") == "logical"
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW max_slot_wal_keep_size") != "-1"
        rows = await connection.fetch(
            "SELECT rolname, rolreplication, rolbypassrls, rolsuper FROM pg_roles "
            "WHERE rolname LIKE 'noetl%'"
        )
        found = {row["rolname"]: tuple(row)[1:] for row in rows}
        methods = await connection.fetch("SELECT DISTINCT auth_method FROM pg_hba_file_rules")
    finally:
        await connection.close()
    assert found["noetl_mirror"] == (True, True, False)
    assert found["noetl_append"] == found["noetl_owner"] == (False, True, False)
    assert found["noetl_read"] == found["noetl_project"] == (False, False, False)
    assert [row["auth_method"] for row in methods] == ["scram-sha-256"]


async def test_postgres_refuses_a_wrong_password(data):
    right = up_in(data).postgres
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(
            host=right.host, port=right.port, user="noetl_read", password="x", database="noetl"
        )


async def test_connect_has_debeziums_plugin(data):
    url = f"{up_in(data).connect.url}/connector-plugins"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        classes = {plugin["class"] for plugin in await answer.json()}
    assert "io.debezium.connector.postgresql.PostgresConnector" in classes


def s3_client(state: StackState, secret_key: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=state.s3.endpoint,
        region_name=state.s3.region,
        aws_access_key_id=state.s3.access_key,
        aws_secret_access_key=secret_key,
    )


def test_s3_keeps_objects_and_refuses_a_wrong_key(data):
    state = up_in(data)
    client = s3_client(state, state.s3.secret_key)
    client.put_object(Bucket=state.s3.bucket, Key="a/b", Body=b"payload")
    assert client.get_object(Bucket=state.s3.bucket, Key="a/b")["Body"].read() == b"payload"
    stranger = s3_client(state, "wrong")
    with pytest.raises(ClientError):
        stranger.get_object(Bucket=state.s3.bucket, Key="a/b")
    client.close()
    stranger.close()


async def test_a_killed_part_comes_back_with_its_data(data):
    dsn = up_in(data).postgres.dsn("noetl_owner")
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE public.kept AS SELECT 42 AS answer")
    connection.terminate()
    for name in ("postgres", "s3"):
        os.kill(parts_of(data)[name]["pid"], signal.SIGKILL)

    def is_back() -> bool:
        parts = [parts_of(data)[name] for name in ("postgres", "s3")]
        return all(part["restarts"] >= 1 and part["state"] == "ready" for part in parts)

    wait_until(is_back, "Postgres and S3 are ready again")
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("SELECT answer FROM public.kept") == 42
    await connection.close()
    assert "exited with code -9" in (data / "logs" / "supervisor.log").read_text()


def test_a_killed_supervisor_leaves_no_process_and_the_next_up_finds_the_data(data):
    before, family = up_in(data), family_of(data)
    os.kill(before.supervisor_pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []
    assert find_stack(data) is None
    assert streams("status", "--data", str(data)).returncode == 4

    began = time.monotonic()
    again = streams("up", "--detach", "--json", "--roles", "none", "--data", str(data))
    assert again.returncode == 0, again.stderr
    print(f"second start after a kill: {time.monotonic() - began:.1f} s")  # noqa: T201
    after = up_in(data)
    assert (after.postgres, after.kafka) == (before.postgres, before.kafka)


def test_down_leaves_no_process_and_no_state(data):
    family = family_of(data)
    assert json.loads(streams("down", "--json", "--data", str(data)).stdout)["stopped"] is True
    assert [process for process in family if process.is_running()] == []
    assert not (data / "state.json").exists()
    assert json.loads(streams("down", "--json", "--data", str(data)).stdout)["stopped"] is False
