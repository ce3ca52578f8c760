"""`streams config show`: effective values, their origins, and nothing secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from streams.cli import cli
from streams.errors import StreamsError
from streams.local.settings import stack_settings
from streams.local.state import (
    ConnectAddress,
    KafkaAddress,
    Phase,
    PostgresAddress,
    RegistryAddress,
    S3Address,
    StackState,
)
from streams.masking import mask_text
from streams.settings import load

FILE = """\
event_store:
  canonical_connection: {roles: {append: {password: hunter2}}}
payload_store:
  connection: {access_key: AKIA-hunter2, secret_key: hunter2}
projection_stores:
  default: {connection: {dsn: "postgresql://noetl:hunter2@pg/noetl"}}
"""


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_json_gives_value_and_origin_of_every_setting() -> None:
    Path("mine.yaml").write_text(FILE)
    env = {"STREAMS__CONNECT__URL": "http://me:hunter2@connect"}
    result = CliRunner(env=env).invoke(
        cli, ["config", "show", "--config", "mine.yaml", "--json"], catch_exceptions=False
    )

    shown = json.loads(result.stdout)
    assert shown["file"] == "mine.yaml"
    settings = shown["settings"]
    assert settings["connect.url"] == {
        "value": "http://me:***@connect",
        "origin": "STREAMS__CONNECT__URL",
        "used": True,
    }
    assert settings["payload_store.connection.access_key"] == {
        "value": "***",
        "origin": "mine.yaml:4",
        "used": True,
    }
    assert settings["payload_store.threshold_bytes"]["value"] == 65_536
    assert settings["payload_store.threshold_bytes"]["origin"] == "default"
    assert settings["event_store.replay.snapshot_interval_events"]["used"]
    assert settings["event_store.replay.require_projection_parity"]["used"]
    assert "hunter2" not in result.output


def test_the_table_has_a_line_for_each_setting_and_no_secrets() -> None:
    Path("streams.yaml").write_text(FILE)
    result = CliRunner().invoke(cli, ["config", "show"], catch_exceptions=False)

    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert lines["projection_stores.default.connection.dsn"].split()[1:] == [
        '"postgresql://noetl:***@pg/noetl"',
        "streams.yaml:6",
        "(not",
        "used",
        "yet)",
    ]
    assert lines["frame_policy_defaults.loop.size"].split()[1:] == ["50", "default"]
    assert "hunter2" not in result.output


def test_a_bad_file_is_an_error_we_know() -> None:
    Path("streams.yaml").write_text("runtime: {tenant_id: 5}")
    result = CliRunner().invoke(cli, ["config", "show"])
    assert isinstance(result.exception, StreamsError)


def test_help_shows_an_example() -> None:
    assert (
        "streams config show --config" in CliRunner().invoke(cli, ["config", "show", "-h"]).output
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://noetl:p@ss/w:rd@pg:5432/noetl", "postgresql://noetl:***@pg:5432/noetl"),
        ("postgresql://noetl@pg/noetl", "postgresql://noetl@pg/noetl"),
        ("https://token@host/x", "https://***@host/x"),
        (
            "host=pg user=noetl password=hunter2 dbname=x",
            "host=pg user=noetl password=*** dbname=x",
        ),
        ("host=pg password='hunter 2' dbname=x", "host=pg password=*** dbname=x"),
        (
            "postgresql://pg/noetl?user=a&password=b&x=1",
            "postgresql://pg/noetl?user=a&password=***&x=1",
        ),
        ("127.0.0.1:9092,other:9092", "127.0.0.1:9092,other:9092"),
        ("http://connect:8083", "http://connect:8083"),
    ],
)
def test_credentials_inside_an_address_are_masked(text: str, shown: str) -> None:
    assert mask_text(text) == shown


def stack(registry: str | None) -> StackState:
    return StackState(
        data=Path("/data"),
        profile="full",
        phase=Phase.READY,
        supervisor_pid=1,
        supervisor_started_at=0.0,
        postgres=PostgresAddress(
            "127.0.0.1", 5555, "noetl", "postgres", "super", {"noetl_append": "word"}
        ),
        kafka=KafkaAddress("127.0.0.1:7777"),
        connect=ConnectAddress("http://127.0.0.1:8888", Path("/data/secrets")),
        s3=S3Address("http://127.0.0.1:9999", "key", "secret", "bucket", "region"),
        registry=RegistryAddress(registry),
    )


def test_a_running_stack_lies_under_the_file() -> None:
    loaded = load(env={}, stack=stack_settings(stack("http://127.0.0.1:6666")))

    store = loaded.settings.event_store
    assert store.canonical_connection.dsn("append") == (
        "postgresql://noetl_append:word@127.0.0.1:5555/noetl?sslmode=prefer"
        "&options=-c%20row_security%3Doff"
    )
    assert store.connection.url == "127.0.0.1:7777"
    assert loaded.settings.connect.secrets_dir == "/data/secrets"
    assert loaded.settings.payload_store.connection.bucket == "bucket"
    assert loaded.settings.serialization.schema_registry.url == "http://127.0.0.1:6666"
    assert loaded.settings.serialization.schema_registry.backend == "file"
    assert loaded.origin_of("connect.url") == "stack"


def test_a_stack_without_registry_names_none() -> None:
    loaded = load(env={}, stack=stack_settings(stack(None)))
    assert loaded.settings.serialization.schema_registry.url is None
