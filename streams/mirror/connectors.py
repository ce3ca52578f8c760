"""Connector templates (`connectors/*.json`), rendered from settings, never with a secret.

Only `${NAME}` in capitals is a placeholder. Other braces belong to Connect or Debezium:
`${directory:folder:file}` makes Connect read a secret itself, so that its value is not in
our files, nor in Connect's config topic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streams.errors import Refused
from streams.settings import Settings

_PLACEHOLDER = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
_SECRET_KEY = re.compile(r"(password|secret|token|credential|api[._]key)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{[a-z]+:[^:}]+:[^:}]+\}")


class BadConnectorTemplate(Refused):
    """A connector template cannot be read or rendered."""


MIRROR_PROFILE = "mirror"
_REGISTRY = re.compile(r"(.+)/apis/ccompat/v\d+/?")
_MISSING = {
    "SECRETS_DIR": "connect.secrets_dir is not set; "
    "set it to the folder from which Connect reads its secrets",
    "REGISTRY_API": "serialization.schema_registry.url is not Apicurio's address "
    "(http://…/apis/ccompat/v7); sinks decode our records through that registry, "
    "and `streams up --profile full` starts one",
    "S3_ENDPOINT": "payload_store.connection.endpoint is not set; "
    "set it to the address of the object store, such as https://s3.eu-west-1.amazonaws.com",
}
"""What to set for a placeholder without a value."""


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector's name and configuration: a template, or rendered.

    `profile` groups connectors that are applied together: the file's name up to a hyphen.
    """

    name: str
    config: Mapping[str, str]
    profile: str = MIRROR_PROFILE


def load(folder: Path) -> tuple[Connector, ...]:
    """Read every template in `folder`, in order of name; see `Connector.profile`.

    Raises:
        BadConnectorTemplate: a file is not JSON of the form {"name": …, "config": {…}}.
    """
    templates = [_read(path) for path in sorted(folder.glob("*.json"))]
    names = [template.name for template in templates]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadConnectorTemplate(
            f"{folder}: connector {min(twice)} has two templates, remove one"
        )
    return tuple(sorted(templates, key=lambda template: template.name))


def _read(path: Path) -> Connector:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise BadConnectorTemplate(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    match content:
        case {"name": str(name), "config": dict(config)} if len(content) == 2:
            for key, value in config.items():
                if not isinstance(value, str):
                    raise BadConnectorTemplate(
                        f"{path}: config.{key}: must be text, put it in quotes"
                    )
            return Connector(name, config, path.stem.partition("-")[0])
    raise BadConnectorTemplate(f'{path}: must be {{"name": …, "config": {{…}}}} and nothing else')


def placeholders(settings: Settings) -> dict[str, str]:
    """Return the settings that templates may use; no secrets.

    Raises:
        BadConnectorTemplate: a value is invalid for Connect.
    """
    database = settings.event_store.canonical_connection
    if database.host.startswith("/"):
        raise BadConnectorTemplate(
            f"event_store.canonical_connection.host: {database.host} is a folder of Unix sockets, "
            "but Connect reaches Postgres over TCP only; give a host name or address"
        )
    values = {
        "DATABASE_HOST": database.host,
        "DATABASE_PORT": str(database.port),
        "DATABASE_NAME": database.database,
        "DATABASE_SSL_MODE": database.ssl_mode,
        "MIRROR_USER": database.roles.mirror.user,
    }
    secrets_dir = settings.connect.secrets_dir
    if secrets_dir is not None:
        if ":" in secrets_dir or "}" in secrets_dir:
            raise BadConnectorTemplate(
                f"connect.secrets_dir: {secrets_dir} contains ':' or '}}', which Connect's "
                "references do not support; choose another folder"
            )
        values["SECRETS_DIR"] = secrets_dir
    return values | _sink_placeholders(settings)


def _sink_placeholders(settings: Settings) -> dict[str, str]:
    database, log = settings.analytics, settings.event_store.canonical_connection
    objects = settings.payload_store.connection
    values = {
        "ANALYTICS_HOST": database.host or log.host,
        "ANALYTICS_PORT": str(database.port or log.port),
        "ANALYTICS_DATABASE": database.database,
        "ANALYTICS_USER": database.user,
        "LAKE_BUCKET": database.lake_bucket,
        "S3_REGION": objects.region,
    }
    if objects.endpoint is not None:
        values["S3_ENDPOINT"] = objects.endpoint
    # Apicurio's converter speaks its own protocol, at another path of the same server.
    if found := _REGISTRY.fullmatch(settings.serialization.schema_registry.url or ""):
        values["REGISTRY_API"] = f"{found[1]}/apis/registry/v2"
    return values


def render(template: Connector, values: Mapping[str, str]) -> Connector:
    """Render the template.

    Raises:
        BadConnectorTemplate: a placeholder has no value, or a secret is not a reference.
    """
    config: dict[str, str] = {}
    for key, text in template.config.items():
        config[key] = _PLACEHOLDER.sub(lambda found: _value(template, found[1], values), text)
        if _SECRET_KEY.search(key) and not _REFERENCE.fullmatch(config[key]):
            raise BadConnectorTemplate(
                f"connector {template.name}: {key}: a secret must be a reference such as "
                "${directory:${SECRETS_DIR}:file}, never the value itself"
            )
    return Connector(template.name, config, template.profile)


def _value(template: Connector, name: str, values: Mapping[str, str]) -> str:
    if name in values:
        return values[name]
    if name in _MISSING:
        raise BadConnectorTemplate(f"connector {template.name}: {_MISSING[name]}")
    known = ", ".join(sorted(values))
    raise BadConnectorTemplate(
        f"connector {template.name}: ${{{name}}} is unknown; available: {known}"
    )
