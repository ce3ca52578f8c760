"""The one shape of INSERT that can take many rows at once: one tuple of VALUES."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from streams.worker.tools.pg_statement import Statement, Token, statements

_NAME = r'(?:"(?:[^"]|"")*"|[A-Za-z_][\w$]*)'
_TARGET = re.compile(
    rf"\s*INSERT\s+INTO\s+((?:{_NAME}\s*\.\s*)?{_NAME})\s*\(([^()]*)\)\s*", re.IGNORECASE
)
_ONE_NAME = re.compile(_NAME)


@dataclass(frozen=True, slots=True)
class Copy:
    """Where COPY would put the rows: each column takes one parameter as it is."""

    schema: str | None
    table: str
    columns: tuple[str, ...]
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """`head` VALUES (tuple with parameters) `tail`; `copy` where COPY does the same."""

    head: str
    values: Statement
    tail: str
    copy: Copy | None

    def many(self, types: Sequence[str]) -> str:
        """Return the statement that takes an array of text for each parameter."""
        names = self.values.parameters
        row = self.values.sql([f"(u.p{n}::{type})" for n, type in enumerate(types, start=1)])
        arrays = ", ".join(f"${n}::text[]" for n in range(1, len(names) + 1))
        columns = ", ".join(f"p{n}" for n in range(1, len(names) + 1))
        source = f"unnest({arrays}) AS u({columns})"
        return f"{self.head} SELECT {row} FROM {source} {self.tail}"  # noqa: S608 - no values in it


def insert_of(statement: Statement) -> Insert | None:
    """Return the INSERT, or None where many rows need as many statements."""
    return _read(statement.text)


@lru_cache(maxsize=1024)
def _read(text: str) -> Insert | None:
    [statement] = statements(text)
    tokens = statement.tokens
    if not tokens or tokens[0].text.lower() != "insert" or not statement.names:
        return None
    at = next((n for n, one in enumerate(tokens) if _is(one, "values")), None)
    if at is None:
        return None
    rest = tokens[at + 1 :]
    if not rest or rest[0].text != "(":
        return None
    end = next((n for n, one in enumerate(rest) if one.text == ")" and one.depth == 0), None)
    if end is None:
        return None
    inside, after = rest[1:end], rest[end + 1 :]
    if not _fits(tokens[:at], inside, after):
        return None
    begin, close = rest[0].end, rest[end].start
    head, tail = statement.text[: tokens[at].start], statement.text[rest[end].end :]
    values = _part(statement, inside, begin, close)
    return Insert(head, values, tail, _copy(head, values, inside) if not after else None)


def _fits(before: Sequence[Token], inside: Sequence[Token], after: Sequence[Token]) -> bool:
    """Say whether parameters are in the tuple only, and nothing comes back."""
    outside = [*before, *after]
    if any(one.kind == "name" for one in outside) or any(_is(one, "returning") for one in after):
        return False
    if after and not _is(after[0], "on"):
        return False
    return not any(one.kind == "word" and one.text.lower() == "default" for one in inside)


def _part(statement: Statement, tokens: Sequence[Token], begin: int, end: int) -> Statement:
    places = [one for one in tokens if one.kind == "name"]
    starts = [begin, *(one.end for one in places)]
    ends = [*(one.start for one in places), end]
    parts = tuple(statement.text[a:b] for a, b in zip(starts, ends, strict=True))
    names = tuple(one.text for one in places)
    return Statement(parts, names, tuple(tokens), statement.text[begin:end])


def _copy(head: str, values: Statement, inside: Sequence[Token]) -> Copy | None:
    """Return the target of COPY if every value is a parameter and nothing else."""
    target = _TARGET.fullmatch(head)
    if target is None or any(part.strip() not in ("", ",") for part in values.parts):
        return None
    columns = tuple(_folded(name) for name in _ONE_NAME.findall(target[2]))
    commas = sum(one.text == "," for one in inside)
    if len(columns) != len(values.names) or commas != len(columns) - 1:
        return None
    *schema, table = [_folded(name) for name in _ONE_NAME.findall(target[1])]
    return Copy(schema[0] if schema else None, table, columns, values.names)


def _folded(name: str) -> str:
    """Return an identifier as the catalog has it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _is(token: Token, word: str) -> bool:
    return token.kind == "word" and token.depth == 0 and token.text.lower() == word
