"""Connection strings of credentials, validated without quoting them in errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import quote

from streams.worker.errors import BadConfig
from streams.worker.port import Config

NOT_POSTGRES = "the connection string does not begin with postgresql://"
_DSN = re.compile(r"postgres(?:ql)?://(?P<who>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_PORT = re.compile(r":([^:,\]]*)(?=,|$)")
_LAST_PORT = 65535
_ESCAPE = (
    "the connection string's login cannot be parsed; percent-encode special characters in user and "
    "password: %23 for #, %2F for /, %3F for ?, %40 for @"
)
UNREADABLE = (
    "the connection string cannot be parsed; check its host, port and options, and percent-encode "
    "special characters in user, password and database"
)


def check_dsn(dsn: str) -> None:
    """Validate a connection string, without quoting it in errors.

    Raises:
        BadConfig: it is not valid.
    """
    found = _DSN.match(dsn)
    if found is None:
        raise BadConfig(NOT_POSTGRES)
    login, _, hosts = found["who"].rpartition("@")
    is_cut = not login and "@" in found["rest"]  # perhaps within a login
    if "@" in login or (is_cut and found["rest"].startswith("#")):
        raise BadConfig(_ESCAPE)
    for port in filter(None, _PORT.findall(hosts)):
        if not (port.isascii() and port.isdecimal()):
            raise BadConfig(
                _ESCAPE if is_cut else "the connection string has a port that is not a number"
            )
        if not 0 < int(port) <= _LAST_PORT:
            raise BadConfig(f"the connection string has a port that is not 1 to {_LAST_PORT}")


def target_of(config: Config) -> str:
    """Return a name for the database without its secrets."""
    if config.get("dsn") is not None:
        return f"dsn:{sha256(str(config['dsn']).encode()).hexdigest()[:16]}"
    return f"auth:{config.get('auth') or config.get('credential')}"


def dsn_of(fields: Mapping[str, str]) -> str:
    """Return a credential's connection string, built from its fields if it has none.

    Raises:
        BadConfig: it has neither `dsn` nor `host`.
    """
    if "dsn" in fields:
        return fields["dsn"]
    host = _first(fields, "host", "db_host")
    if not host:
        raise BadConfig("the credential for postgres needs 'dsn', or 'host', 'user', 'password' …")
    user = quote(_first(fields, "user", "username", "db_user"), safe="")
    password = quote(_first(fields, "password", "db_password"), safe="")
    named = _first(fields, "database", "dbname", "db_name")
    database = quote(named, safe="") or user
    login = f"{user}:{password}@" if user else ""
    return f"postgresql://{login}{host}:{_first(fields, 'port', 'db_port') or '5432'}/{database}"


def _first(fields: Mapping[str, str], *names: str) -> str:
    """Return the first of these fields that is not empty; NoETL's have the prefix `db_`."""
    return next((fields[name] for name in names if fields.get(name)), "")
