"""The texts that give a credential away, in every form in which somebody may quote them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from urllib.parse import quote, quote_plus

from streams.redact.fields import bare

SHORTEST = 4
"""A shorter text is no secret, and would be found everywhere."""
SURE = 8
"""A shorter text may be a part of anybody's data."""
LONG = 16
"""A text that is no shorter is not found by chance, even if it is a word or a number."""
# Written alike in JSON, in an address, in a page and in Python.
_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}|%[0-9A-F]{2}")
_PAGES = ("<>&", "<>&'+")
"""What writers of JSON escape beyond need, for JSON that stands in a page."""


def secrets_in(fields: Mapping[str, str]) -> set[str]:
    """Return every text that gives a credential away, as it may be quoted by somebody."""
    found = set(bare(fields))
    return {form for one in found if len(one) >= SHORTEST for form in _forms(one)}


def stands_out(text: str) -> bool:
    """Return whether a text in user data must be the secret, not an ordinary word or number."""
    if len(text) >= LONG:
        return True
    is_word = text.isalpha() and (text.islower() or text.isupper() or text.istitle())
    return len(text) >= SURE and not is_word and not text.isdigit()


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
