"""Secret texts of a credential, in every encoding in which they may be quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from urllib.parse import quote, quote_plus

from streams.redact.fields import bare

SHORTEST = 4
"""Shorter texts are not redacted: they would match everywhere."""
SURE = 8
"""Shorter texts may be ordinary data."""
LONG = 16
"""Texts at least this long do not match by chance, even if a word or number."""
# The same in JSON, URLs, HTML and Python.
_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}|%[0-9A-F]{2}")
_PAGES = ("<>&", "<>&'+")
"""Characters that some JSON writers escape for HTML."""


def secrets_in(fields: Mapping[str, str]) -> set[str]:
    """Return every secret text of a credential, in every encoding."""
    found = set(bare(fields))
    return {form for one in found if len(one) >= SHORTEST for form in _forms(one)}


def stands_out(text: str) -> bool:
    """Return whether a text in user data must be the secret, not an ordinary word or number."""
    if len(text) >= LONG:
        return True
    is_word = text.isalpha() and (text.islower() or text.isupper() or text.istitle())
    return len(text) >= SURE and not is_word and not text.isdigit()


def _forms(secret: str) -> set[str]:
    is_address = "://" in secret and "@" in secret  # its secret parts are matched separately
    if is_address or _PLAIN.fullmatch(secret):
        return {secret}
    in_json = _in_json(secret)
    return {
        secret,
        *in_json,
        *(json.dumps(one)[1:-1] for one in in_json),  # JSON within a JSON string
        *_either_case({quote(secret, safe=""), quote(secret), quote_plus(secret)}),
        escape(secret),
        repr(secret)[1:-1],
        secret.encode().decode("latin-1"),  # as headers are often decoded
    }


def _in_json(secret: str) -> set[str]:
    found = {json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    for letters in _PAGES:
        escaped = {ord(one): f"\\u{ord(one):04x}" for one in letters}
        found |= {one.translate(escaped) for one in found}
    return _either_case(found | {one.replace("/", "\\/") for one in found})


def _either_case(texts: set[str]) -> set[str]:
    """Return texts with the hex digits of their escapes in both cases."""
    return texts | {_ESCAPED.sub(_other_case, one) for one in texts}


def _other_case(escaped: re.Match[str]) -> str:
    return escaped[0][:2] + escaped[0][2:].upper() if escaped[0][0] == "\\" else escaped[0].lower()
