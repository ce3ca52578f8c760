"""The texts that give a credential away, in every form in which somebody may quote them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from html import escape
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

SHORTEST = 4
"""A shorter text is no secret, and would be found everywhere."""
SURE = 8
"""A shorter text may be a part of anybody's data."""
LONG = 16
"""A text that is no shorter is not found by chance, even if it is a word or a number."""
# Fields that say who, where and how, and are wanted in messages and in data.
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
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|sig|auth|cred", re.IGNORECASE)
# Written alike in JSON, in an address, in a page and in Python.
_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}|%[0-9A-F]{2}")
_PAGES = ("<>&", "<>&'+")
"""What writers of JSON escape beyond need, for JSON that stands in a page."""


def secrets_in(fields: Mapping[str, str]) -> set[str]:
    """Return every text that gives a credential away, as it may be quoted by somebody."""
    found = set(_bare(fields))
    return {form for one in found if len(one) >= SHORTEST for form in _forms(one)}


def stands_out(text: str) -> bool:
    """Say whether a text in somebody's data must be the secret, and no word or number of theirs."""
    if len(text) >= LONG:
        return True
    is_word = text.isalpha() and (text.islower() or text.isupper() or text.istitle())
    return len(text) >= SURE and not is_word and not text.isdigit()


def _bare(fields: Mapping[str, str]) -> Iterator[str]:
    for name, value in fields.items():
        if "://" in value:
            yield from _in_address(value)
        elif name.lower() not in OPEN:
            yield value
            yield from _inside(value)
    user = fields.get("username") or fields.get("user") or ""
    password = fields.get("password") or ""
    if user or password:
        yield _basic(user, password)
    if not password and fields.keys() <= _LOGIN:
        yield user  # a key that is sent as a name without a password


def _inside(value: str) -> Iterator[str]:
    """Yield what is secret in a JSON object, such as a service account's key."""
    if not value.lstrip().startswith("{"):
        return
    try:
        read = json.loads(value)
    except ValueError:
        return
    yield from _bare({name: one for name, one in read.items() if isinstance(one, str)})


def _in_address(value: str) -> Iterator[str]:
    """Yield an address with a login, and what is secret in it; one without is no secret."""
    try:
        parts = urlsplit(value)
        user, password = unquote(parts.username or ""), parts.password
    except ValueError:
        yield value
        return
    is_key = password is None and user != "" and not parts.scheme.startswith("postgres")
    if password is not None or is_key or "=" in parts.query:
        yield value
    yield from (one for name, one in parse_qsl(parts.query) if _SECRET_NAME.search(name))
    if is_key:
        yield user
    if password is not None:
        yield from (password, unquote(password), _basic(user, unquote(password)))


def _basic(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()


def _forms(secret: str) -> set[str]:
    is_address = "://" in secret and "@" in secret  # what is secret in it is found by itself
    if is_address or _PLAIN.fullmatch(secret):
        return {secret}
    in_json = _in_json(secret)
    return {
        secret,
        *in_json,
        *(json.dumps(one)[1:-1] for one in in_json),  # JSON that is carried as a text in JSON
        *_either_case({quote(secret, safe=""), quote(secret), quote_plus(secret)}),
        escape(secret),
        repr(secret)[1:-1],
        secret.encode().decode("latin-1"),  # as a header is often read
    }


def _in_json(secret: str) -> set[str]:
    found = {json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    for letters in _PAGES:
        escaped = {ord(one): f"\\u{ord(one):04x}" for one in letters}
        found |= {one.translate(escaped) for one in found}
    return _either_case(found | {one.replace("/", "\\/") for one in found})


def _either_case(texts: set[str]) -> set[str]:
    """Return texts with their escapes' digits as they are, and in the other case."""
    return texts | {_ESCAPED.sub(_other_case, one) for one in texts}


def _other_case(escaped: re.Match[str]) -> str:
    return escaped[0][:2] + escaped[0][2:].upper() if escaped[0][0] == "\\" else escaped[0].lower()
