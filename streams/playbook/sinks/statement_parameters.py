"""Parameters of a sink's statement, by its dialect."""

from __future__ import annotations

import re
from collections.abc import Collection

_SQL_QUOTED = re.compile(
    r"--[^\n]*|/\*.*?\*/|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
    r"|\$(\w*)\$.*?\$\1\$|::|:=",
    re.S,
)
_CYPHER_QUOTED = re.compile(
    r"//[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.S
)
_SQL_NAME = re.compile(r":([A-Za-z_]\w*)")
_CYPHER_NAME = re.compile(r"\$([A-Za-z_]\w*)")


def parameters_of(statement: str, dialects: Collection[str]) -> tuple[str, set[str]]:
    """Return the sign that marks a parameter, and the names of those in the statement."""
    if "cypher" in dialects:
        return "$", set(_CYPHER_NAME.findall(_CYPHER_QUOTED.sub(" ", statement)))
    return ":", set(_SQL_NAME.findall(_SQL_QUOTED.sub(" ", statement)))
