"""Validation of credential names and fields, and parsing of secret text."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from streams.credential.errors import BadCredential
from streams.events.text import has_surrogate

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
MAX_BYTES = 64 * 1024
# The field of a text that is not a JSON object, by the credential's type.
_FIELD_OF_TEXT = {"bearer": "token", "http": "token", "token": "token"}


def check_name(name: str, what: str = "name") -> str:
    """Return the name if it is valid.

    Raises:
        BadCredential: it is not valid.
    """
    if not NAME.fullmatch(name):
        raise BadCredential(
            f"{name!r} is not a valid credential {what}; use letters, digits, '_', '-' and '.'"
        )
    return name


def check_fields(fields: Mapping[str, object]) -> dict[str, str]:
    """Return the fields as strings.

    Raises:
        BadCredential: there are none, or a name or value is invalid.
    """
    if not fields:
        raise BadCredential("a credential needs at least one field, such as dsn or token")
    made = {}
    for name, value in fields.items():
        if not isinstance(name, str) or not FIELD.fullmatch(name):
            raise BadCredential("a field's name may have letters, digits, '_', '-' and '.' only")
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise BadCredential(f"field {name!r} must be text or a number")
        made[name] = str(value)
        if has_surrogate(made[name]):
            raise BadCredential(f"field {name!r} is not UTF-8")
    if sum(len(value.encode()) for value in made.values()) > MAX_BYTES:
        raise BadCredential(f"the fields have more than {MAX_BYTES} bytes in total")
    return made


def fields_of(text: str, kind: str, where: str) -> dict[str, str]:
    """Parse a JSON object of fields, or one line: a connection string, or a token by its type.

    Raises:
        BadCredential: it is neither. The message contains none of the text.
    """
    stripped = text.strip()
    if not stripped:
        raise BadCredential(f"{where} is empty; give a JSON object of fields, or one line")
    if stripped.startswith("{"):
        try:
            found = orjson.loads(stripped)
        except orjson.JSONDecodeError:
            # Without the parser's message: it could quote a part of the secret.
            why = f"{where} begins like a JSON object but is not valid JSON"
            raise BadCredential(why) from None
        return check_fields(found)
    if len(stripped.splitlines()) > 1:
        raise BadCredential(f"{where} has several lines; give a JSON object of fields, or one line")
    return check_fields({_FIELD_OF_TEXT.get(kind, "dsn"): stripped})
