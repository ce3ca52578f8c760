"""`streams topics` and `streams connectors`, as far as they go without servers."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from aiohttp.test_utils import unused_port
from click.testing import CliRunner, Result

from streams.analytics.errors import NotASink
from streams.cli import cli
from streams.cli.connectors import connectors
from streams.cli.topics import topics
from streams.errors import StreamsError
from streams.kafka.errors import BrokerUnavailable
from streams.mirror.connect_errors import ConnectUnavailable
from streams.mirror.connectors import BadConnectorTemplate
from streams.topology import draw, load

REPOSITORY = Path(__file__).resolve().parents[3]
COMMANDS = [
    (group.name, command) for group in (topics, connectors) for command in group.commands.values()
]


def run(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"STREAMS__CONNECT__SECRETS_DIR": "/s", **env})


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration file and no stack, whatever lies around the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STREAMS_CONFIG", raising=False)


@pytest.mark.parametrize(("group", "command"), COMMANDS)
def test_every_command_has_an_example_and_json(group: str, command: click.Command) -> None:
    output = run(group, str(command.name), "--help").output
    assert f"streams {group} {command.name}" in output.split("Example", 1)[1]
    assert "--json" in output


def test_drawing_writes_the_page_where_it_is_told(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "page.md"
    assert run("topics", "draw", "--out", str(target)).output == f"wrote {target}\n"
    assert target.read_text(encoding="utf-8") == draw(load(REPOSITORY / "topics"))


def test_drawing_dry_writes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    report = json.loads(run("topics", "draw", "--dry-run", "--json", "--out", str(target)).output)
    assert report["page"].startswith("# Topology")
    assert report["written"] is False
    assert not target.exists()


def test_a_page_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = run("topics", "draw", "--out", str(tmp_path / "file" / "page.md"))
    assert isinstance(outcome.exception, StreamsError)
    assert "cannot be written" in str(outcome.exception)


def test_a_dry_run_shows_what_would_be_sent_and_no_secret() -> None:
    key = "STREAMS__EVENT_STORE__CANONICAL_CONNECTION__ROLES__MIRROR__PASSWORD"
    outcome = run("connectors", "apply", "--dry-run", "--json", **{key: "hush"})
    config = json.loads(outcome.output)["connectors"]["noetl-mirror"]
    assert config["database.password"] == "${directory:/s:noetl_mirror}"
    assert "hush" not in outcome.output


def test_a_connector_without_template_is_refused_with_those_there_are() -> None:
    outcome = run("connectors", "apply", "no-such", "--dry-run")
    assert isinstance(outcome.exception, StreamsError)
    assert "no-such; available: noetl-analytics-events, noetl-lake-events, noetl-mirror" in str(
        outcome.exception
    )


def test_a_missing_folder_of_secrets_is_told_before_anything_is_sent() -> None:
    outcome = CliRunner().invoke(cli, ["connectors", "apply"])
    assert isinstance(outcome.exception, BadConnectorTemplate)


def test_the_sinks_are_not_applied_with_the_mirror() -> None:
    outcome = run("connectors", "apply", "--dry-run", "--json")
    assert set(json.loads(outcome.output)["connectors"]) == {"noetl-mirror"}


@pytest.mark.parametrize("profile", ["analytics", "lake"])
def test_a_dry_run_of_sinks_shows_references_in_place_of_secrets(profile: str) -> None:
    env = {
        "STREAMS__SERIALIZATION__SCHEMA_REGISTRY__URL": "http://r:1/apis/ccompat/v7",
        "STREAMS__PAYLOAD_STORE__CONNECTION__ENDPOINT": "http://s:2",
        "STREAMS__PAYLOAD_STORE__CONNECTION__SECRET_KEY": "hush",
        "STREAMS__ANALYTICS__PASSWORD": "hush",
    }
    outcome = run("connectors", "apply", "--profile", profile, "--dry-run", "--json", **env)
    (config,) = json.loads(outcome.output)["connectors"].values()
    assert config["value.converter.apicurio.registry.url"] == "http://r:1/apis/registry/v2"
    assert "${directory:/s:noetl_analytics}" in config.values()
    assert "hush" not in outcome.output


def test_a_sink_without_a_registry_names_the_setting_to_give() -> None:
    outcome = run("connectors", "apply", "--profile", "analytics", "--dry-run")
    assert isinstance(outcome.exception, BadConnectorTemplate)
    assert "serialization.schema_registry.url" in str(outcome.exception)


@pytest.mark.parametrize("command", [("pause", "x"), ("resume", "x"), ("lag",), ("verify",)])
def test_sink_commands_without_connect_are_one_line(command: tuple[str, ...]) -> None:
    address = f"http://127.0.0.1:{unused_port()}"
    outcome = run("connectors", *command, STREAMS__CONNECT__URL=address)
    assert isinstance(outcome.exception, ConnectUnavailable)
    assert "\n" not in str(outcome.exception)


@pytest.mark.parametrize("command", ["lag", "verify", "rebuild"])
def test_only_sinks_have_a_lag_and_rows(command: str) -> None:
    outcome = run("connectors", command, "noetl-mirror")
    assert isinstance(outcome.exception, NotASink)
    assert "the sinks are noetl-analytics-events, noetl-lake-events" in str(outcome.exception)


@pytest.mark.parametrize("command", ["status", "apply", "restart"])
def test_without_connect_the_error_is_one_line(command: str) -> None:
    address = f"http://127.0.0.1:{unused_port()}"
    outcome = run("connectors", command, STREAMS__CONNECT__URL=address)
    assert isinstance(outcome.exception, ConnectUnavailable)
    assert str(outcome.exception).startswith(address)
    assert "\n" not in str(outcome.exception)


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_without_kafka_the_error_is_one_line(command: str) -> None:
    address = f"127.0.0.1:{unused_port()}"
    env = {"STREAMS__EVENT_STORE__CONNECTION__URL": address}
    outcome = run("topics", command, "--timeout", "0.5", **env)
    assert isinstance(outcome.exception, BrokerUnavailable)
    assert str(outcome.exception).startswith(address)
    assert "\n" not in str(outcome.exception)
