"""Templates are filled in from settings, and a secret is never in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streams.mirror.connectors import BadConnectorTemplate, Connector, load, placeholders, render
from streams.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[3]
DUTIES = ("owner", "append", "read", "mirror", "project", "collect")


def settings(**database: object) -> Settings:
    roles = {duty: {"user": f"the_{duty}", "password": f"hush-{duty}"} for duty in DUTIES}
    connection = {"host": "db.example", "port": 6543, "database": "log", "roles": roles, **database}
    return Settings.model_validate(
        {
            "event_store": {"canonical_connection": connection},
            "connect": {"secrets_dir": "/run/secrets"},
            "analytics": {"password": "hush-analytics"},
            "serialization": {"schema_registry": {"url": "http://registry/apis/ccompat/v7"}},
            "payload_store": {
                "backend": "s3",
                "connection": {"endpoint": "http://s3", "secret_key": "hush-s3"},
            },
        }
    )


@pytest.fixture(scope="module")
def mirror() -> Connector:
    (template,) = [one for one in load(REPOSITORY / "connectors") if one.name == "noetl-mirror"]
    return template


def test_a_placeholder_takes_its_value_from_the_settings(mirror: Connector) -> None:
    config = render(mirror, placeholders(settings())).config
    where = [config[f"database.{key}"] for key in ("hostname", "port", "dbname", "user")]
    assert where == ["db.example", "6543", "log", "the_mirror"]


def test_the_password_is_a_reference_that_connect_resolves(mirror: Connector) -> None:
    config = render(mirror, placeholders(settings())).config
    assert config["database.password"] == "${directory:/run/secrets:noetl_mirror}"


def test_no_rendered_connector_contains_a_secret() -> None:
    values = placeholders(settings())
    rendered = [render(one, values).config for one in load(REPOSITORY / "connectors")]
    assert rendered
    assert "hush" not in json.dumps(rendered)


def test_what_belongs_to_debezium_is_left_as_it_is(mirror: Connector) -> None:
    config = render(mirror, placeholders(settings())).config
    assert config["transforms.event.route.topic.replacement"] == "noetl.events.${routedByValue}"


@pytest.mark.parametrize("key", ["database.password", "sasl.client.secret", "auth.token"])
def test_a_secret_given_as_a_value_is_refused(key: str) -> None:
    with pytest.raises(
        BadConnectorTemplate, match=f"connector x: {key}: a secret must be a reference"
    ):
        render(Connector("x", {key: "hunter2"}), {})


def test_an_unknown_placeholder_is_named_with_those_there_are() -> None:
    with pytest.raises(
        BadConnectorTemplate, match=r"connector x: \$\{COLOUR\} is unknown; available: A, B"
    ):
        render(Connector("x", {"paint": "${COLOUR}"}), {"A": "1", "B": "2"})


def test_without_a_folder_of_secrets_the_setting_to_give_is_named(mirror: Connector) -> None:
    with pytest.raises(BadConnectorTemplate, match=r"connect\.secrets_dir is not set"):
        render(mirror, placeholders(Settings()))


def test_a_unix_socket_is_refused_because_connect_speaks_tcp() -> None:
    with pytest.raises(BadConnectorTemplate, match=r"canonical_connection\.host: /run/postgres"):
        placeholders(settings(host="/run/postgres"))


def test_a_folder_of_secrets_that_a_reference_cannot_carry_is_refused() -> None:
    odd = settings().model_copy(
        update={"connect": Settings().connect.model_copy(update={"secrets_dir": "/run/a:b"})}
    )
    with pytest.raises(BadConnectorTemplate, match=r"connect\.secrets_dir: /run/a:b"):
        placeholders(odd)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"name": "x",\n "config": }', r"bad\.json:2: not JSON"),
        ('{"name": "x"}', r"bad\.json: must be"),
        ('{"name": "x", "config": {}, "more": 1}', r"bad\.json: must be"),
        ('{"name": "x", "config": {"tasks.max": 1}}', r"config\.tasks\.max: must be text"),
    ],
)
def test_a_bad_template_names_its_file(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadConnectorTemplate, match=says):
        load(tmp_path)


def test_two_templates_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"name": "x", "config": {}}', encoding="utf-8")
    with pytest.raises(BadConnectorTemplate, match="connector x has two templates"):
        load(tmp_path)
