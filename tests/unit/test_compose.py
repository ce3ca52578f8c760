"""docker-compose.kafka.yml is whole, safe on a laptop, and the same stack as the embedded one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from streams import settings
from streams.app import ROLES
from streams.data_folder import Layout, ready_path
from streams.local.connect import worker_settings
from streams.local.kafka import server_settings
from streams.local.postgres import ROLE_OPTIONS
from streams.local.postgres import SETTINGS as POSTGRES_SETTINGS
from streams.settings.environment import KNOWN
from streams.topology import load
from tests.support.servers.shared import container_services

REPOSITORY = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)(?::-([^}]*))?\}")
OURS = ("migrate", "topics", "connectors")
DATA = "/var/lib/streams"
ROLE_SERVICES = tuple(f"{role}-0" for role in ROLES)
NOT_IN_CONTAINERS = {"listen_addresses", "unix_socket_directories"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    text = (REPOSITORY / "docker-compose.kafka.yml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


def filled_in(value: str) -> str:
    """Return what Compose makes of a value when nothing is set in the environment."""
    return VARIABLE.sub(lambda found: found[2] or "", value)


def connect_options(services: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the worker's options by the names that the image's start script gives them."""
    given = services["connect"]["environment"]
    names = {name: name.removeprefix("CONNECT_").lower().replace("_", ".") for name in given}
    return {names[name]: value for name, value in given.items()}


def test_every_part_is_there(services: dict[str, dict[str, Any]]) -> None:
    parts = {"kafka", "postgres", "connect", "minio", "bucket", "apicurio", "mirror"}
    assert set(services) == parts | set(OURS) | set(ROLE_SERVICES)


def test_every_dependency_exists_and_can_meet_its_condition(
    services: dict[str, dict[str, Any]],
) -> None:
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in services, f"{name} depends on {other}"
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[other], f"{name} waits for {other}'s health"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert services[other]["restart"] == "on-failure", f"{other} must end"


def test_whatever_ends_is_awaited_by_someone(services: dict[str, dict[str, Any]]) -> None:
    """`up --wait` takes the end of a container for a failure unless another one awaits it."""
    awaited = {
        other
        for service in services.values()
        for other, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    assert awaited == {"bucket", *OURS}
    assert all("healthcheck" in services[name] for name in set(services) - awaited)


def test_the_dependencies_have_no_circle(services: dict[str, dict[str, Any]]) -> None:
    def reach(name: str, seen: tuple[str, ...] = ()) -> None:
        assert name not in seen, " -> ".join((*seen, name))
        for other in services[name].get("depends_on", {}):
            reach(other, (*seen, name))

    for name in services:
        reach(name)


def test_our_services_run_in_order(services: dict[str, dict[str, Any]]) -> None:
    commands = {name: services[name]["command"] for name in OURS}
    assert commands == {
        "migrate": ["migrate"],
        "topics": ["topics", "apply"],
        "connectors": ["connectors", "apply"],
    }
    assert set(services["connectors"]["depends_on"]) == {"connect", "migrate", "topics"}
    assert "topics" in services["connect"]["depends_on"], "else Connect makes its own topics"


def test_every_image_is_pinned(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        _, colon, tag = service["image"].rpartition(":")
        assert colon, f"{name}: {service['image']}"
        assert re.search(r"\d+\.\d+|\d{4}-\d{2}-\d{2}", tag), f"{name}: {service['image']}"


def test_ports_are_open_on_this_machine_only(services: dict[str, dict[str, Any]]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)
    outside = [port.split(":")[1] for port in ports]
    assert len(outside) == len(set(outside))


def test_no_secret_is_written_down_but_a_default_for_development(compose: dict[str, Any]) -> None:
    def secrets(node: Any, key: str = "") -> list[tuple[str, str]]:
        if isinstance(node, dict):
            return [pair for name, value in node.items() for pair in secrets(value, str(name))]
        return [(key, str(node))] if re.search(r"PASSWORD|SECRET_KEY|^content$", key) else []

    found = secrets(compose)
    assert len(found) >= 10
    for key, value in found:
        (variable,) = VARIABLE.findall(value)
        assert value == f"${{{variable[0]}:-development-only}}", key


def test_every_variable_is_explained_at_the_top() -> None:
    text = (REPOSITORY / "docker-compose.kafka.yml").read_text(encoding="utf-8")
    head, body = text.split("\nname:", 1)
    names = {name for name, _ in VARIABLE.findall(body)}
    assert names
    assert all(re.search(rf"^#   {name} ", head, re.MULTILINE) for name in names)


@pytest.mark.parametrize("name", [*OURS, "mirror", *ROLE_SERVICES])
def test_our_environment_consists_of_real_settings(
    services: dict[str, dict[str, Any]], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {key: filled_in(value) for key, value in services[name]["environment"].items()}
    assert all(key.startswith("STREAMS__") or key in KNOWN for key in environment)
    # Unknown keys and bad values are refused, so loading is the check.
    monkeypatch.chdir(tmp_path)
    loaded = settings.load(env=environment)
    assert loaded.settings.event_store.connection.url == "kafka:19092"


def test_there_is_a_service_for_every_role(services: dict[str, dict[str, Any]]) -> None:
    for role in ROLES:
        service = services[f"{role}-0"]
        assert service["command"] == ["run", role, "--data", DATA]
        assert service["image"] == services["migrate"]["image"]
        assert service["build"]["dockerfile"] == "deploy/Dockerfile"
        assert service["restart"] == "unless-stopped"
        assert {"kafka", "postgres", "minio", "connectors"} <= set(service["depends_on"])


def test_every_role_has_a_name_and_a_folder_of_its_own(compose: dict[str, Any]) -> None:
    services = compose["services"]
    names = [services[name]["environment"]["NOETL_SHARD_ID"] for name in ROLE_SERVICES]
    assert names == list(ROLE_SERVICES)
    folders = [services[name]["volumes"] for name in ROLE_SERVICES]
    assert folders == [[f"{name}:{DATA}"] for name in ROLE_SERVICES]
    assert set(ROLE_SERVICES) <= set(compose["volumes"])
    dockerfile = (REPOSITORY / "deploy/Dockerfile").read_text(encoding="utf-8")
    assert f"VOLUME {DATA}" in dockerfile


def test_a_role_is_healthy_when_it_says_so(services: dict[str, dict[str, Any]]) -> None:
    flag = ready_path(Layout(Path(DATA)), "$$NOETL_SHARD_ID")
    for name in set(ROLE_SERVICES) - {"api-0"}:
        assert str(flag) in services[name]["healthcheck"]["test"][1]
    environment = services["api-0"]["environment"]
    port = environment["STREAMS__API__PORT"]
    assert f"http://127.0.0.1:{port}/healthz" in services["api-0"]["healthcheck"]["test"][-1]
    assert services["api-0"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    url = services["worker-0"]["environment"]["STREAMS__API__URL"]
    assert url == f"http://api-0:{port}"


def test_tests_run_on_containers_without_roles(services: dict[str, dict[str, Any]]) -> None:
    wanted = container_services()
    assert set(wanted) == set(services) - set(ROLE_SERVICES)
    needed = {other for name in wanted for other in services[name].get("depends_on", {})}
    assert needed <= set(wanted), "Compose would start these, too"


def test_workers_and_the_api_share_a_token(services: dict[str, dict[str, Any]]) -> None:
    key = "STREAMS__CREDENTIAL_STORE__WORKER_TOKEN"
    assert services["worker-0"]["environment"][key] == services["api-0"]["environment"][key]


def test_connect_reads_the_password_where_our_settings_say(compose: dict[str, Any]) -> None:
    environment = compose["x-streams"]["environment"]
    folder = environment["STREAMS__CONNECT__SECRETS_DIR"]
    (config,) = compose["services"]["connect"]["configs"]
    assert config["target"] == f"{folder}/noetl_mirror"
    key = "STREAMS__EVENT_STORE__CANONICAL_CONNECTION__ROLES__MIRROR__PASSWORD"
    assert compose["configs"][config["source"]]["content"] == environment[key]


def test_postgres_has_the_options_of_the_embedded_one(services: dict[str, dict[str, Any]]) -> None:
    given = dict(
        option.removeprefix("--").split("=", 1) for option in services["postgres"]["command"][1:]
    )
    chosen = {key: value for key, value in POSTGRES_SETTINGS.items() if not key.startswith("log_")}
    assert given == {key: chosen[key] for key in chosen if key not in NOT_IN_CONTAINERS}


def test_the_roles_may_do_what_they_may_in_the_embedded_stack() -> None:
    script = (REPOSITORY / "deploy/compose/roles.sh").read_text(encoding="utf-8")
    roles = dict(re.findall(r'^role (noetl_\w+) "?([A-Z ]*)"?$', script, re.MULTILINE))
    assert roles == ROLE_OPTIONS


def test_kafka_is_as_strict_and_durable_as_the_embedded_one(
    services: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    embedded = server_settings(Layout(tmp_path), 9092, 9093)
    given = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in services["kafka"]["environment"].items()
    }
    for key in (
        "process.roles",
        "auto.create.topics.enable",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "group.initial.rebalance.delay.ms",
    ):
        assert given[key] == str(embedded[key]), key


def test_connect_has_the_essential_options_of_the_embedded_one(
    services: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    embedded = worker_settings(Layout(tmp_path), tmp_path, "kafka:19092", 8083)
    given = connect_options(services)
    for key in (
        "bootstrap.servers",
        "group.id",
        "exactly.once.source.support",
        "connector.client.config.override.policy",
        "scheduled.rebalance.max.delay.ms",
        "config.storage.topic",
        "offset.storage.topic",
        "status.storage.topic",
        "offset.storage.partitions",
        "status.storage.partitions",
        "config.providers.directory.class",
    ):
        assert given[key] == str(embedded[key]), key
    assert given["config.providers"] in str(embedded["config.providers"]).split(",")


def test_connects_own_topics_are_the_declared_ones(services: dict[str, dict[str, Any]]) -> None:
    declared = load(REPOSITORY / "topics").at("local").by_name
    given = connect_options(services)
    for kind in ("config", "offset", "status"):
        topic = declared[given[f"{kind}.storage.topic"]]
        assert str(topic.partitions) == given.get(f"{kind}.storage.partitions", "1")
        assert str(topic.replication) == given[f"{kind}.storage.replication.factor"]


def test_versions_are_those_of_the_embedded_stack(services: dict[str, dict[str, Any]]) -> None:
    pom = (REPOSITORY / "streams/local/pom.xml").read_text(encoding="utf-8")
    for service, artifact in {
        "kafka": "kafka_2.13",
        "connect": "debezium-connector-postgres",
        "apicurio": "apicurio-registry-app",
    }.items():
        found = re.search(rf"<artifactId>{artifact}</artifactId>\s*<version>([^<]+)<", pom)
        assert found, artifact
        assert services[service]["image"].endswith(f":{found[1]}")


def test_the_image_carries_every_folder_the_package_is_built_from() -> None:
    dockerfile = (REPOSITORY / "deploy/Dockerfile").read_text(encoding="utf-8")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]

    copied = re.findall(r"^COPY (\S+) \1$", dockerfile, re.MULTILINE)

    assert set(copied) == {*wheel["packages"], *wheel["force-include"]}
    assert all((REPOSITORY / folder).is_dir() for folder in copied)
