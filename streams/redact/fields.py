"""Secrets in a credential's fields: whole values, and secrets embedded in them."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

# Fields that are not secret, and useful in messages and data.
OPEN = frozenset(
    (
        *("host", "hostname", "port", "user", "username", "login", "database", "dbname", "db"),
        *("schema", "catalog", "table", "index", "namespace", "keyspace", "collection", "dataset"),
        *("bucket", "prefix", "path", "file", "folder", "topic", "queue", "vhost", "stage"),
        *("header", "type", "kind", "driver", "scheme", "protocol", "version", "api_version"),
        *("tls", "ssl", "sslmode", "ssl_mode", "use_ssl", "verify", "insecure", "sslrootcert"),
        *("timeout", "connect_timeout", "charset", "encoding", "application_name"),
        *("endpoint", "base_url", "region", "location", "zone", "service", "service_name"),
        *("account", "warehouse", "role", "project", "project_id", "workspace", "environment"),
        *("authenticator", "grant_type", "scope", "audience", "client_id", "client_email"),
        *("tenant", "tenant_id", "organization", "universe_domain", "private_key_id"),
    )
)
_LOGIN = frozenset(("username", "password", "type"))
# Fields that may hold an address, which is secret only with a login.
_ADDRESS_NAME = re.compile(
    r"ur[il]s?$|dsn|addr|endpoint|conn|server|host|broker|origin|issuer", re.IGNORECASE
)
_SCHEME = r"(?P<scheme>[A-Za-z][\w+.-]*)://"
_ADDRESS = re.compile(rf"\s*(?:\w{{1,20}}:)?{_SCHEME}")  # jdbc:postgresql://
# A login whose password has unescaped characters.
_MEANT = re.compile(rf"{_SCHEME}(?P<user>[^:/?#@\s\[]*):(?P<password>(?P<head>[^/?#]*).*)@")
_PORTS = re.compile(r"[0-9]*(?:,.*)?")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|sig|auth|cred", re.IGNORECASE)
# Stricter, for key=value pairs in arbitrary text.
_SECRET_WORD = re.compile(
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|signature|(?<![a-z])sig|cred(?:ential)?s?"
    r"|(?:access|account|api|auth|private|secret|shared)[ _-]?key)$",
    re.IGNORECASE,
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"]|"")*"|\{(?:[^}]|\}\})*\}"""
_WORDS = (
    re.compile(rf"\b(?P<name>[A-Za-z][\w.-]{{0,40}})\s?=\s?(?P<value>{_QUOTED}|[^\s&]+)"),
    re.compile(rf"\b(?P<name>[A-Za-z][\w .-]{{0,40}})=\s?(?P<value>{_QUOTED}|[^;]+)"),
)
"""Pairs of a connection string: `host=… password=…`, `a=1&sig=…`, `Server=…;Pwd=…`."""
_IN_HEADER = re.compile(r"(?P<kind>bearer|basic|token|api-?key)\s+(?P<rest>\S.*)", re.IGNORECASE)


def bare(fields: Mapping[str, str]) -> Iterator[str]:
    """Yield every secret text in a credential's fields."""
    yield from _values(fields)
    if not fields.get("password") and fields.keys() <= _LOGIN:
        yield fields.get("username") or ""  # an API key used as user name without a password
    if "header" in fields:
        yield fields.get("value", "").partition(" ")[2].strip()


def _values(fields: Mapping[str, str]) -> Iterator[str]:
    for name, value in fields.items():
        yield from _value(name.lower(), value)
    user = fields.get("username") or fields.get("user") or ""
    password = fields.get("password") or ""
    if user or password:
        yield _basic(user, password)


def _value(name: str, value: str) -> Iterator[str]:
    if (address := _ADDRESS.match(value)) is not None:
        yield from _in_address(value[address.start("scheme") :])
    if name in OPEN:
        return
    if address is None or not _ADDRESS_NAME.search(name):
        yield value
    yield from _in_words(value)
    yield from _in_header(value)
    yield from _in_json(value)


def _in_address(address: str) -> Iterator[str]:
    """Yield an address with a login and its secret parts; nothing without a login."""
    try:
        parts = urlsplit(address)
        user, password = unquote(parts.username or ""), parts.password
    except ValueError:
        yield address
        yield from _as_meant(address)
        return
    is_key = password is None and user != "" and not parts.scheme.startswith("postgres")
    if password is not None or is_key or "=" in parts.query:
        yield address
    yield from (one for name, one in parse_qsl(parts.query) if _SECRET_NAME.search(name))
    if is_key:
        yield user
    if password is not None:
        yield from (password, unquote(password), _basic(user, unquote(password)))
    elif not user:
        yield from _as_meant(address)


def _as_meant(address: str) -> Iterator[str]:
    """Yield the password of a login that does not parse because of `/`, `?` or `#`.

    And its pieces: parsers quote them in errors as port or name.
    """
    found = _MEANT.match(address)
    if found is None:
        return
    password, head = found["password"], found["head"]
    if not _PORTS.fullmatch(head) or password[len(head) :].startswith("#"):
        yield from (address, *re.split(r"[/?#]", password))
    elif found["scheme"].startswith("http"):
        return  # what follows the port is a path
    yield from (password, unquote(password), _basic(unquote(found["user"]), unquote(password)))


def _in_words(value: str) -> Iterator[str]:
    """Yield the passwords and keys in a connection string of pairs."""
    if "=" not in value:
        return
    for words in _WORDS:
        for found in words.finditer(value):
            if _SECRET_WORD.search(found["name"].strip()):
                yield from _unquoted(found["value"])


def _unquoted(value: str) -> Iterator[str]:
    quote, inner = value[0], value[1:-1]
    if len(value) > 1 and (quote, value[-1]) in (("'", "'"), ('"', '"'), ("{", "}")):
        yield from (inner, re.sub(r"\\(.)", r"\1", inner), inner.replace(value[-1] * 2, value[-1]))
    else:
        yield value.strip()


def _in_header(value: str) -> Iterator[str]:
    """Yield the secrets in the value of an Authorization header."""
    found = _IN_HEADER.match(value)
    if found is None:
        return
    yield found["rest"]
    if found["kind"].lower() == "basic":
        try:
            yield b64decode(found["rest"], validate=True).decode().partition(":")[2]
        except ValueError:
            return


def _in_json(value: str) -> Iterator[str]:
    """Yield the secrets in JSON, at any depth, such as in a service account's key."""
    if not value.lstrip().startswith(("{", "[")):
        return
    try:
        pending: list[tuple[str, object]] = [("", json.loads(value))]
    except (ValueError, RecursionError):
        return
    while pending:
        name, one = pending.pop()
        if isinstance(one, dict):
            yield from _values({key: text for key, text in one.items() if isinstance(text, str)})
            pending += [(key, inner) for key, inner in one.items() if not isinstance(inner, str)]
        elif isinstance(one, list):
            pending += [(name.removesuffix("s"), inner) for inner in one]
        elif isinstance(one, str):
            yield from _value(name.lower(), one)


def _basic(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()
