"""Masking of credentials in addresses and connection strings."""

from __future__ import annotations

import re

HIDDEN = "***"

# user:password@ of an address; the password may itself hold '@', '/' or ':'.
_USER_AND_PASSWORD = re.compile(
    r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<user>[^:/@\s]*):(?P<rest>\S*)@"
)
# token@ of an address; a Postgres user without a password is not secret.
_TOKEN = re.compile(r"(?P<scheme>\b(?!postgres)[A-Za-z][\w+.-]*://)[^:/@\s]+@")
# password=... of a key=value connection string, or of a query.
_PASSWORD_WORD = re.compile(
    r"(?P<word>\b(?:password|passwd|pwd|secret|secret_key|access_key|token)\s*=\s*)"
    r"(?:'(?:[^'\\]|\\.)*'|[^\s&;]+)",
    re.IGNORECASE,
)


def mask_text(text: str) -> str:
    """Mask the credentials in an address or a connection string."""
    text = _USER_AND_PASSWORD.sub(rf"\g<scheme>\g<user>:{HIDDEN}@", text)
    text = _TOKEN.sub(rf"\g<scheme>{HIDDEN}@", text)
    return _PASSWORD_WORD.sub(rf"\g<word>{HIDDEN}", text)
