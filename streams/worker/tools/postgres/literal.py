"""Statements of NoETL's spelling: text without placeholders, and where each of them may run."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Config
from streams.worker.tools.postgres.statement import Statement, literal_statements

_TEXTS = ("command", "commands", "cmds", "query", "sql", "statement")
_ENCODED = ("command_b64", "commands_b64")
_READS = frozenset(("select", "values", "table", "show", "explain"))
_WRITES = frozenset(("insert", "update", "delete", "merge"))
_SILENT = frozenset(
    ("create", "drop", "alter", "truncate", "comment", "grant", "revoke", "do", "lock", "analyze")
)
"""First words of statements without rows that do not change the session."""
_BRACKETS = frozenset(("begin", "start", "commit", "end"))
_UNDOES = frozenset(("rollback", "abort"))
_APART = frozenset(
    (verb, what)
    for verb in ("create", "drop")
    for what in ("database", "tablespace", "subscription")
)
_REINDEXED = frozenset(("database", "system", "schema"))
_PLAIN = _READS | _WRITES | _SILENT | _BRACKETS | {"with"}


@dataclass(frozen=True, slots=True)
class StatementGroup:
    """Neighbouring statements that run in one transaction, or each outside of any."""

    statements: tuple[Statement, ...]
    in_transaction: bool

    @property
    def writes(self) -> bool:
        """Whether repeating it would change rows again."""
        return any(one.writes for one in self.statements)


def command_texts(config: Config) -> list[str]:
    """Return the texts of a task's command, under whichever of its names.

    Raises:
        BadConfig: there is none, more than one, or it is not text.
    """
    given = [name for name in (*_TEXTS, *_ENCODED) if config.get(name) is not None]
    if len(given) != 1:
        what = f"{' and '.join(map(repr, given))} are given" if given else "'command' is missing"
        raise BadConfig(f"{what}; give one of {', '.join((*_TEXTS[:4], *_ENCODED))}, or 'script'")
    value = config[given[0]]
    texts = value if isinstance(value, list) else [value]
    if given[0] in _ENCODED:
        return [_decoded(given[0], one) for one in texts]
    return [_plain_text(given[0], one) for one in texts]


def groups(texts: Sequence[str]) -> list[StatementGroup]:
    """Return the statements in order, grouped by where they may run.

    BEGIN and COMMIT bracket a transaction that the command has anyway; a command that undoes
    one controls its own, so that nothing in it is wrapped.
    """
    found = [one for text in texts for one in literal_statements(text)]
    if any(one.words[:1] and one.words[0] in _UNDOES and "to" not in one.words for one in found):
        return [StatementGroup(tuple(found), in_transaction=False)]
    return [
        StatementGroup(tuple(some), in_transaction)
        for in_transaction, some in groupby(found, key=lambda one: not _is_apart(one))
    ]


def changes_session(statement: Statement) -> bool:
    """Return whether the session may differ afterwards, so that it must be reset."""
    words = statement.words
    return not words or words[0] not in _PLAIN or "set_config" in words


def is_bracket(statement: Statement) -> bool:
    """Return whether it begins or commits a transaction."""
    return statement.words[:1] != () and statement.words[0] in _BRACKETS


def has_no_rows(statement: Statement) -> bool:
    """Return whether it certainly returns no rows."""
    words = statement.words
    if not words:
        return False
    verb = words[0] if words[0] != "with" else _main_verb(statement)
    if verb in _WRITES:
        return not any(
            one.kind == "word" and one.depth == 0 and one.text.lower() == "returning"
            for one in statement.tokens
        )
    return verb in _SILENT


def _main_verb(statement: Statement) -> str:
    """Return the verb that follows the WITH clause."""
    outer = (one.text.lower() for one in statement.tokens if one.kind == "word" and not one.depth)
    return next((word for word in outer if word in _READS | _WRITES), "")


def _is_apart(statement: Statement) -> bool:
    """Return whether Postgres refuses it within a transaction."""
    words = statement.words
    first = words[0] if words else ""
    if first == "vacuum" or words[:2] in _APART or words[:2] == ("alter", "system"):
        return True
    if first == "cluster":
        return len(words) == 1
    if first == "reindex" and not _REINDEXED.isdisjoint(words[:5]):
        return True
    return first in ("create", "drop", "reindex", "alter") and "concurrently" in words


def _plain_text(name: str, value: Json) -> str:
    if isinstance(value, str):
        return value
    raise BadConfig(f"{name!r} must be text or a list of texts, not {type(value).__name__}")


def _decoded(name: str, value: Json) -> str:
    try:
        return b64decode(str(value), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise BadConfig(f"{name!r} is not base64 of UTF-8 text: {error}") from error
