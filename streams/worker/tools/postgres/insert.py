"""INSERT with one tuple of VALUES, rewritten to insert many rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from streams.worker.tools.postgres.statement import Statement, Token, statements


@dataclass(frozen=True, slots=True)
class Insert:
    """`head` VALUES (tuple with parameters) `tail`."""

    head: str
    values: Statement
    tail: str

    def many(self, types: Sequence[str], *, parameter: int = 1, where: str = "") -> str:
        """Return the statement that takes all rows as one JSON array, in one parameter.

        Every value is passed as text and cast to its type. JSON costs this process less than
        arrays of text or lines for COPY do (docs/decisions/0015-tools.md). `where` can suppress
        all rows.
        """
        names = [f'"{name}"' for name in self.values.parameters]
        row = self.values.sql([f"(u.{n}::{type})" for n, type in zip(names, types, strict=True)])
        columns = ", ".join(f"{name} text" for name in names)
        source = f"json_to_recordset(${parameter}::text::json) AS u({columns}){where}"
        return f"{self.head} SELECT {row} FROM {source} {self.tail}"  # noqa: S608 - no values in it


def insert_of(statement: Statement) -> Insert | None:
    """Return the INSERT, or None if every row needs its own statement."""
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
    return Insert(head, values, tail)


def _fits(before: Sequence[Token], inside: Sequence[Token], after: Sequence[Token]) -> bool:
    """Return whether only the tuple has parameters, and nothing is returned."""
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


def _is(token: Token, word: str) -> bool:
    return token.kind == "word" and token.depth == 0 and token.text.lower() == word
