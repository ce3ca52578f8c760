"""What a credential looks like from outside: its name, its fields, and text that is one."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from streams.credential.errors import BadCredential
from streams.events.text import has_surrogate

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
MAX_BYTES = 64 * 1024
# What a text that is no JSON object means, by the credential's type.
_LONE = {"bearer": "token", "http": "token", "token": "token"}


def check_name(name: str, what: str = "name") -> str:
    """Return the name, which must be usable.

    Raises:
        BadCredential: it is not.
    """
    if not NAME.fullmatch(name):
        raise BadCredential(
            f"{name!r} is no {what} of a credential; use letters, digits, '_', '-' and '.'"
        )
    return name


def check_fields(fields: Mapping[str, object]) -> dict[str, str]:
    """Return the fields as texts.

    Raises:
        BadCredential: there are none, a name is odd, or a value is a structure, no UTF-8, or
            too long.
    """
    if not fields:
        raise BadCredential("a credential needs at least one field, such as dsn or token")
    made = {}
    for name, value in fields.items():
        if not isinstance(name, str) or not FIELD.fullmatch(name):
            raise BadCredential("a field's name has letters, digits, '_', '-' and '.' only")
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise BadCredential(f"field {name!r} must be text or a number")
        made[name] = str(value)
        if has_surrogate(made[name]):
            raise BadCredential(f"field {name!r} is not UTF-8")
    if sum(len(value.encode()) for value in made.values()) > MAX_BYTES:
        raise BadCredential(f"the fields are longer than {MAX_BYTES} bytes together")
    return made


def fields_of(text: str, kind: str, where: str) -> dict[str, str]:
    """Read a JSON object of fields, or one line: a connection string, or a token by its type.

    Raises:
        BadCredential: it is neither. The message has none of the text in it.
    """
    word = text.strip()
    if not word:
        raise BadCredential(f"{where} is empty; give a JSON object of fields, or one line")
    if word.startswith("{"):
        try:
            found = orjson.loads(word)
        except orjson.JSONDecodeError:
            # Without the parser's words: they could show a piece of the secret.
            why = f"{where} begins like a JSON object but cannot be read as one"
            raise BadCredential(why) from None
        return check_fields(found)
    if len(word.splitlines()) > 1:
        raise BadCredential(f"{where} has several lines; give a JSON object of fields, or one line")
    return check_fields({_LONE.get(kind, "dsn"): word})
