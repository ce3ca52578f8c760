"""SQL tokenizer of the postgres tool: statements, placeholders, kinds of statement.

This is not a SQL parser. It skips quotes and comments, finds `:name` outside of those, and
recognizes the form of INSERT that can take many rows at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(
    r"""
      (?P<quoted> --[^\n]*+ | [eE]'(?:[^'\\]|\\.|'')*+' | '[^']*+(?:''[^']*+)*+'
                | "[^"]*+(?:""[^"]*+)*+" | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$ | :: | := )
    | (?P<comment>/\*)
    | :(?P<name>[A-Za-z_]\w*)
    | \$(?P<place>\d+)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<mark>[();,])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_READS = frozenset({"select", "show", "explain", "values", "table"})
_WRITES = frozenset({"insert", "update", "delete", "merge"})
_CHANGES = _WRITES | {"do"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, placeholder or mark, with its position and depth in parentheses."""

    kind: str
    text: str
    start: int
    end: int
    depth: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; `parts` is its text between the placeholders called `names`."""

    parts: tuple[str, ...]
    names: tuple[str, ...]
    tokens: tuple[Token, ...]
    text: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """The distinct names, in the order of their positions `$1`, `$2` …"""
        return tuple(dict.fromkeys(self.names))

    @property
    def words(self) -> tuple[str, ...]:
        """Its words in lower case, without quoted text."""
        return tuple(one.text.lower() for one in self.tokens if one.kind == "word")

    @property
    def reads(self) -> bool:
        """Return whether it only reads, judging by its words."""
        first = self.words[:1]
        return bool(first) and (first[0] in _READS or (first[0] == "with" and not self.writes))

    @property
    def writes(self) -> bool:
        """Return whether repeating it would change rows again, so that it needs a fence."""
        words = self.words
        if not words:
            return False
        return words[0] in _CHANGES or (words[0] == "with" and not _WRITES.isdisjoint(words))

    @property
    def returns(self) -> bool | None:
        """Return whether it returns rows; None: only the server knows."""
        if self.reads:
            return True
        if self.words[:1] and self.words[0] in _WRITES:
            return any(one.depth == 0 and one.text.lower() == "returning" for one in self.tokens)
        return None

    def numbered(self, parameters: Sequence[str]) -> str:
        """Return its text with `$1`, `$2` … replaced."""
        pieces: list[str] = []
        begin = 0
        for one in self.tokens:
            if one.kind == "place":
                pieces += (self.text[begin : one.start], parameters[int(one.text) - 1])
                begin = one.end
        return "".join([*pieces, self.text[begin:]])

    def sql(self, parameters: Sequence[str] | None = None) -> str:
        """Return its text with every placeholder replaced, by default by `$1`, `$2` …"""
        order = self.parameters
        if parameters is None:
            parameters = [f"${number}" for number in range(1, len(order) + 1)]
        by_name = dict(zip(order, parameters, strict=True))
        pieces = [self.parts[0]]
        for name, part in zip(self.names, self.parts[1:], strict=True):
            pieces += (by_name[name], part)
        return "".join(pieces)


@lru_cache(maxsize=1024)
def statements(text: str) -> tuple[Statement, ...]:
    """Return the non-empty statements, separated by `;`."""
    return tuple(_statement(*one) for one in _split(text))


def literal_statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of text without placeholders: `:name` is a part of it.

    They are not cached: such text contains values.
    """
    return tuple(Statement((one,), (), _moved(tokens, at), one) for one, tokens, at in _split(text))


def _split(text: str) -> Iterator[tuple[str, list[Token], int]]:
    """Yield the text, tokens and position of each statement."""
    tokens: list[Token] = []
    begin = 0
    for token in _tokens(text):
        if token.text == ";" and token.kind == "mark":
            if tokens:
                yield text[begin : token.start], tokens, begin
            tokens, begin = [], token.end
        else:
            tokens.append(token)
    if tokens:
        yield text[begin:], tokens, begin


def _tokens(text: str) -> Iterator[Token]:
    depth = position = 0
    while (match := _TOKEN.search(text, position)) is not None:
        kind, position = match.lastgroup or "", match.end()
        if kind == "comment":
            position = _end_of_comment(text, position)
        if kind in ("quoted", "tag", "comment"):
            continue
        depth -= match[0] == ")"
        yield Token(kind, match[kind], match.start(), match.end(), depth)
        depth += match[0] == "("


def _end_of_comment(text: str, position: int) -> int:
    """Return where the comment ends that begins before `position`; comments may be nested."""
    level = 1
    for mark in _COMMENT_MARK.finditer(text, position):
        level += 1 if mark[0] == "/*" else -1
        if level == 0:
            return mark.end()
    return len(text)


def _moved(tokens: Sequence[Token], begin: int) -> tuple[Token, ...]:
    """Return tokens with positions in a statement that begins at `begin`."""
    return tuple(
        Token(one.kind, one.text, one.start - begin, one.end - begin, one.depth) for one in tokens
    )


def _statement(text: str, tokens: list[Token], begin: int) -> Statement:
    moved = _moved(tokens, begin)
    places = [one for one in moved if one.kind == "name"]
    starts = [0, *(one.end for one in places)]
    ends = [*(one.start for one in places), len(text)]
    parts = tuple(text[a:b] for a, b in zip(starts, ends, strict=True))
    return Statement(parts, tuple(one.text for one in places), moved, text)
