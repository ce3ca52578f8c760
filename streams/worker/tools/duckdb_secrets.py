"""Secrets of a DuckDB session, from `auth: {alias: {source: credential, tool, key}}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Credentials
from streams.worker.tools.duckdb_extensions import load_extension
from streams.worker.tools.task_config import mapping, text

_EXTENSIONS: Mapping[str, str] = {"postgres": "postgres_scanner", "hmac": "httpfs", "s3": "httpfs"}
_TYPES: Mapping[str, str] = {"postgres": "postgres", "hmac": "gcs", "s3": "s3"}
_FIELDS: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]] = {
    "postgres": (
        ("HOST", ("db_host", "host")),
        ("PORT", ("db_port", "port")),
        ("USER", ("db_user", "user", "username")),
        ("PASSWORD", ("db_password", "password")),
        ("DATABASE", ("db_name", "database", "dbname")),
    ),
    "hmac": (
        ("KEY_ID", ("key_id", "access_key")),
        ("SECRET", ("secret_key", "secret")),
        ("ENDPOINT", ("endpoint",)),
    ),
    "s3": (
        ("KEY_ID", ("access_key", "access_key_id", "aws_access_key_id", "key_id")),
        ("SECRET", ("secret_key", "secret_access_key", "aws_secret_access_key")),
        ("REGION", ("region",)),
        ("ENDPOINT", ("endpoint",)),
    ),
}


@dataclass(frozen=True, slots=True)
class SessionSecret:
    """A secret that statements use by its alias; a Postgres database is also attached."""

    alias: str
    tool: str
    fields: Mapping[str, str] = field(repr=False)
    scope: str | None = None


async def find_secrets(credentials: Credentials, config: Config, call: Call) -> list[SessionSecret]:
    """Return the secrets that the task's `auth` names.

    Raises:
        BadConfig: an entry is not valid.
        UnknownCredential: a credential does not exist.
    """
    found = []
    for alias in mapping(config, "auth"):
        entry = mapping(mapping(config, "auth"), alias)
        tool = str(entry.get("tool") or "postgres")
        if tool not in _TYPES or not alias.isidentifier():
            known = ", ".join(_TYPES)
            raise BadConfig(f"auth.{alias}: 'tool' is {tool!r}, not one of {known}")
        name = text(entry, "key", "credential")
        fields = await credentials.find(call.tenant_id, call.organization_id, name)
        scope = entry.get("scope")
        found.append(SessionSecret(alias, tool, fields, None if scope is None else str(scope)))
    return found


def create_secrets(
    session: duckdb.DuckDBPyConnection, secrets: Sequence[SessionSecret], *, attaches: bool
) -> None:
    """Create the secrets in a session, and attach databases if `attaches`.

    Raises:
        BadConfig: an extension is not available, or a field is missing.
        duckdb.Error: DuckDB refuses one of them.
    """
    for one in secrets:
        load_extension(session, _EXTENSIONS[one.tool])
        session.execute(_statement(one))
        if attaches and one.tool == "postgres":
            session.execute(
                f"ATTACH IF NOT EXISTS '' AS {one.alias} (TYPE postgres, SECRET {one.alias})"
            )


def _statement(secret: SessionSecret) -> str:
    values = [f"TYPE {_TYPES[secret.tool]}"]
    for name, names in _FIELDS[secret.tool]:
        value = next((secret.fields[one] for one in names if secret.fields.get(one)), None)
        if value is not None:
            values += _endpoint(value) if name == "ENDPOINT" else [f"{name} {_quoted(value)}"]
    if len(values) == 1:
        wanted = ", ".join(names[0] for _, names in _FIELDS[secret.tool])
        raise BadConfig(f"auth.{secret.alias}: its credential needs {wanted}")
    if secret.scope is not None:
        values.append(f"SCOPE {_quoted(secret.scope)}")
    return f"CREATE OR REPLACE TEMPORARY SECRET {secret.alias} ({', '.join(values)})"


def _endpoint(url: str) -> list[str]:
    """Return the options of a server's address; DuckDB takes it without a scheme."""
    scheme, _, host = url.rpartition("://")
    is_plain = scheme == "http"
    plain = ["USE_SSL false"] if is_plain else []
    return [f"ENDPOINT {_quoted(host.rstrip('/'))}", "URL_STYLE 'path'", *plain]


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
