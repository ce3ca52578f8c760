"""Playbooks from files: the tried one, and those it calls by path."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from streams.catalog.errors import UnknownVersion
from streams.playbook.errors import BadPlaybook
from streams.playbook.model import Playbook
from streams.playbook.parse import check, parse
from streams.playbook.problem import Problem
from streams.trial.errors import BadTrial, PathNotFound

SUFFIXES = (".yaml", ".yml")
_LARGEST_BYTES = 4 * 1024 * 1024


class FilePlaybooks:
    """Compiled playbooks by path: of the tried file, the files given with it, those beside it.

    A file beside is read when a playbook calls its path. Files have no versions: any version
    of a path is the file's content.
    """

    def __init__(self, file: Path, given: Sequence[Path] = ()) -> None:
        """Compile the tried file.

        Raises:
            BadTrial: it cannot be read.
            BadPlaybook: it has errors.
        """
        self._file, self._given = file, tuple(given)
        self._playbooks: list[Playbook] = []
        self._ids: dict[str, int] = {}
        self._loaded = {file}
        self.problems: tuple[Problem, ...] = ()
        """Warnings and notes about the tried file."""
        self.main = self._load(file)

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return a playbook.

        Raises:
            UnknownVersion: there is none.
        """
        if not 0 < catalog_id <= len(self._playbooks):
            raise UnknownVersion(f"catalog {catalog_id}", version, [])
        return self._playbooks[catalog_id - 1]

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        """Return the catalog id and version of a path.

        Raises:
            PathNotFound: no file has it.
            BadPlaybook: the file that has it has errors.
        """
        if path not in self._ids:
            await asyncio.to_thread(self._find, path)
        return self._ids[path], version or 1

    def _find(self, path: str) -> None:
        """Load the file whose playbook has this path."""
        bad: BadPlaybook | None = None
        for file in self._candidates():
            text = _text_of(file)
            if file in self._loaded or text is None or path not in text:
                continue
            try:
                playbook = parse(text, str(file), clients=False)
            except BadPlaybook as error:  # it may only mention the path
                bad = bad or error
                continue
            self._loaded.add(file)
            if playbook.path not in self._ids:
                self._ids[playbook.path] = self._add(playbook)
            if playbook.path == path:
                return
        raise bad or PathNotFound(path, str(self._file.parent))

    def _candidates(self) -> Iterator[Path]:
        yield from playbook_files(self._given)
        beside = (one for one in self._file.parent.iterdir() if one.suffix in SUFFIXES)
        yield from sorted(one for one in beside if one.is_file())

    def _load(self, file: Path) -> Playbook:
        playbook, self.problems = check(read_text(file))
        if playbook is None:
            raise BadPlaybook(str(file), self.problems)
        self._ids[playbook.path] = self._add(playbook)
        return playbook

    def _add(self, playbook: Playbook) -> int:
        self._playbooks.append(playbook)
        return len(self._playbooks)


def playbook_files(given: Iterable[Path]) -> Iterator[Path]:
    """Yield files, and the playbooks below folders."""
    for one in given:
        if one.is_dir():
            yield from sorted(file for file in one.rglob("*") if file.suffix in SUFFIXES)
        else:
            yield one


def read_text(file: Path) -> str:
    """Return the text of a file.

    Raises:
        BadTrial: it cannot be read.
    """
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadTrial(f"{file}: cannot be read: {error}; give a file of UTF-8 text") from error


def _text_of(file: Path) -> str | None:
    """Return the text of a file that may be anything; None if it is not a playbook."""
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            return None
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return text if re.search(r"^kind:\s*[\"']?Playbook\b", text, re.M) else None
