"""The projections of an execution: those of its playbook's version, and those of packages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from cachetools import LRUCache

from streams.errors import Inconsistent, PoisonRecord, Refused
from streams.events.model import Root
from streams.payload.port import Scope
from streams.playbook.declarations import Declaration
from streams.playbook.projections import projections_of
from streams.playbook.spelling import Spelling
from streams.playbook.spelling_signs import spelling_of
from streams.playbook.yaml_document import as_mapping, read
from streams.projector.business.declared_fold import DeclaredFold
from streams.projector.business.maintained import maintained_folds
from streams.projector.business.plugins import PluginFold
from streams.projector.business.port import KeyedFold
from streams.projector.business.versions import NO_VERSIONS, ProjectionVersion, VersionReader

_log = logging.getLogger(__name__)
REMEMBERED = 1024


class PlaybookTexts(Protocol):
    """Reads the text of playbooks; a version never changes."""

    async def content(self, catalog_id: int, version: int) -> str:
        """Return a version's content as registered.

        Raises:
            Refused: there is none.
            Unavailable: the log or the payload store cannot be reached.
        """
        ...


class MemoryTexts:
    """Texts in a dictionary, for tests."""

    def __init__(self, texts: Mapping[tuple[int, int], str]) -> None:
        self._texts = texts

    async def content(self, catalog_id: int, version: int) -> str:
        """Return a version's content."""
        if (catalog_id, version) not in self._texts:
            raise Refused(f"catalog {catalog_id} has no version {version}; register it first")
        return self._texts[catalog_id, version]


class PlaybookOf(NamedTuple):
    """What an execution runs, and whose it is."""

    scope: Scope
    catalog_id: int
    version: int


class Declared:
    """Looks up the projections of executions; those of recent playbooks are cached."""

    def __init__(
        self,
        texts: PlaybookTexts,
        plugins: Iterable[PluginFold] = (),
        versions: VersionReader = NO_VERSIONS,
        *,
        with_building: bool = True,
    ) -> None:
        """Without `with_building`, versions that are not complete yet are left out."""
        self._texts, self._plugins = texts, tuple(plugins)
        self._versions, self._with_building = versions, with_building
        self._cached: LRUCache[tuple[int, int], tuple[KeyedFold, ...]] = LRUCache(REMEMBERED)

    async def maintained(
        self, playbooks: Mapping[Root, PlaybookOf]
    ) -> dict[Root, tuple[KeyedFold, ...]]:
        """Return the projections of executions, in all versions that are maintained.

        The versions are read anew each time: a batch that does not know of a version has only
        events that the log had before the version was registered.

        Raises:
            Unavailable: log, payload store or tables cannot be reached.
        """
        own = {
            root: await self.folds(one.catalog_id, one.version) for root, one in playbooks.items()
        }
        scopes = {playbooks[root].scope for root, folds in own.items() if folds}
        if not scopes:
            return own
        found: dict[Scope, list[ProjectionVersion]] = {}
        for one in await self._versions.versions(scopes):
            found.setdefault(one.scope, []).append(one)
        return {
            root: maintained_folds(
                folds, found.get(playbooks[root].scope, ()), with_building=self._with_building
            )
            for root, folds in own.items()
        }

    async def folds(self, catalog_id: int, version: int) -> tuple[KeyedFold, ...]:
        """Return the projections that a playbook's version and packages declare.

        A playbook that cannot be read has none: its executions must not block others.

        Raises:
            Unavailable: the log or the payload store cannot be reached.
        """
        found = self._cached.get((catalog_id, version))
        if found is None:
            found = self._with_plugins(await self._declarations(catalog_id, version))
            self._cached[catalog_id, version] = found
        return found

    async def _declarations(self, catalog_id: int, version: int) -> tuple[Declaration, ...]:
        if not catalog_id:
            return ()
        try:
            return declarations_of(await self._texts.content(catalog_id, version))
        except (Refused, Inconsistent, PoisonRecord) as error:
            _log.error("catalog %s version %s: no projections: %s", catalog_id, version, error)
            return ()

    def _with_plugins(self, declarations: Iterable[Declaration]) -> tuple[KeyedFold, ...]:
        found: list[KeyedFold] = [DeclaredFold(one) for one in declarations]
        names = {one.name for one in found}
        for plugin in self._plugins:
            if plugin.name in names:
                _log.error("projection %s of a package: the playbook's is used", plugin.name)
            else:
                found.append(plugin)
        return tuple(found)


def declarations_of(text: str) -> tuple[Declaration, ...]:
    """Return the declarations of a registered playbook, without compiling its steps.

    Incomplete ones are left out: they were reported when the playbook was registered.
    """
    if "projections" not in text:
        return ()
    document = read(text)
    if spelling_of(as_mapping(document.value))[0] is Spelling.NOETL:
        document = read(text, version="1.1")
    return projections_of(document, as_mapping(document.value))
