"""Cypher statements in an embedded graph, a file below the sink folder."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from pathlib import Path

import ladybug

from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused
from streams.worker.sinks.sink_folder import below

_LOCKED = "Could not set lock"
_QUOTED = re.compile(
    r"//[^\n]*|/\*(?:[^*]|\*[^/])*\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL
)
_FILES = re.compile(
    r"(?:^|;)\s*(?:(?:explain|profile|logical)\s+)*"
    r"((?:force\s+)?(?:copy|export|import|install|load|attach)|update|uninstall)\b"
    r"|\b(load)\s+(?:from|csv|with|extension)\b",
    re.IGNORECASE,
)
_SPACES = str.maketrans("\u180e\ufeff", "  ")
"""Characters that are spaces for the engine but not for Python."""


class LadybugDriver:
    """Runs the statement in the graph of `spec.path`; its node tables must exist.

    Only one process can have a graph open, so writers take turns. Statements that read or write
    other files are refused.
    """

    def __init__(self, around: SinkEnvironment) -> None:
        self._folder = around.folder
        self._turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def write(self, job: SinkJob) -> SinkReference:
        """Run the statement."""
        named = job.spec.get("path") or job.spec.get("database")
        known = job.secret.get("path") or job.secret.get("database")
        if named is None and not known:
            raise BadConfig("a graph sink with ladybug needs a file: spec: {path: …}")
        place = below(self._folder, str(named)) if named is not None else Path(str(known))
        if (word := _reaching(job.statement or "")) is not None:
            raise BadConfig(f"{word} is refused: a ladybug statement may not access other files")
        async with self._turns[place]:
            try:
                await asyncio.to_thread(_run, place, job)
            except RuntimeError as error:  # the engine raises no other
                if _LOCKED in str(error):
                    raise TargetUnavailable(f"{place.name}: another process has it open") from error
                raise SinkRefused(_code(str(error)), str(error)) from error
            except OSError as error:
                why = f"{place.name}: {error.strerror or error}"
                raise SinkRefused("os", why) from error
        return {"store": "graph", "key": "statement", "range": ""}

    async def close(self) -> None:
        """Do nothing: no connection stays open."""


def _reaching(statement: str) -> str | None:
    """Return the keyword by which a statement would access other files or fetch code."""
    found = _FILES.search(_QUOTED.sub(" ", statement).translate(_SPACES))
    return None if found is None else " ".join(str(found[1] or found[2]).upper().split())


def _run(place: Path, job: SinkJob) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    database = ladybug.Database(str(place))
    try:
        session = ladybug.Connection(database)
        try:
            session.execute(job.statement or "", dict(job.params))
        finally:
            session.close()
    finally:
        database.close()


def _code(text: str) -> str:
    return text.partition(" exception")[0].strip().lower().replace(" ", "_")[:40] or "refused"
