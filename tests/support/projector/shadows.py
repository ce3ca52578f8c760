"""Blue/green of the projections of a bench in memory."""

from __future__ import annotations

from collections.abc import Iterable

from streams.clock import SystemClock
from streams.playbook.declarations import Declaration
from streams.projector.business.declared import declarations_of
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.plugins import PluginFold
from streams.projector.business.reading import BusinessQueries
from streams.projector.business.shadow.build import ShadowProgress, build_shadow
from streams.projector.business.shadow.memory import MemoryVersions
from streams.projector.business.shadow.operations import ShadowOperations
from streams.projector.business.versions import ProjectionVersion
from streams.projector.heads import ScannedRootHeads
from streams.replay.parity_versions import ReplayedVersionParity
from tests.support.projector.business import CARE, PLAYBOOK, BusinessBench

NOW = SystemClock()
SUMS = "sums: {sum: score}"


def playbook_with(*, version: int = 2, column: str = "") -> str:
    """Return the playbook with another version of `patients`, and a further column."""
    text = PLAYBOOK.replace("- name: patients\n", f"- name: patients\n    version: {version}\n")
    return text.replace("      latest:", f"      {column}\n      latest:") if column else text


def declared_in(text: str, name: str = "patients") -> Declaration:
    """Return a declaration of a playbook."""
    return next(one for one in declarations_of(text) if one.name == name)


class Shadows:
    """What an operator has, over the parts of a bench."""

    def __init__(
        self,
        bench: BusinessBench,
        plugins: Iterable[PluginFold] = (),
        *,
        is_parity_required: bool = True,
    ) -> None:
        self.bench = bench
        self.reader = MemoryBusiness(bench.store)
        self.store = MemoryVersions(bench.store)
        self.queries = BusinessQueries(self.reader, plugins)
        parity = ReplayedVersionParity(bench.replay(), self.reader)
        self.operations = ShadowOperations(
            self.store,
            self.reader,
            self.queries,
            NOW,
            CARE,
            parity=parity if is_parity_required else None,
            within_s=0,
        )

    async def register(self, declaration: Declaration) -> None:
        """Register a version, as a build does first."""
        versions = await self.operations.versions(declaration.name)
        listed = await self.reader.projections(CARE)
        change = versions.build(declaration.to_json(), declaration.version, listed, NOW.now())
        await self.store.change(change)

    async def fill(self, name: str = "patients") -> ShadowProgress:
        """Fold a registered version for every execution."""
        bench = self.bench
        heads, folds = ScannedRootHeads(bench.log), bench.folds()
        done = await build_shadow(
            heads, bench.log, bench.store, folds, bench.declared, scope=CARE, projection=name
        )
        await self.store.change((await self.operations.versions(name)).built(NOW.now()))
        return done

    async def build(self, declaration: Declaration) -> ShadowProgress:
        """Register and fold a version."""
        await self.register(declaration)
        return await self.fill(declaration.name)

    async def statuses(self, name: str = "patients") -> dict[int, str]:
        """Return the status of each version."""
        return {one.version: one.status for one in (await self.operations.versions(name)).all}

    async def served(self, name: str = "patients") -> tuple[int, dict[str, object]]:
        """Return the version that readers see, and a column of each row."""
        page = await self.queries.page(CARE, name)
        rows = {str(row.key["facility"]): row.values["scores"] for row in page.rows}
        return page.projection.version, dict(rows)

    async def version(self, number: int, name: str = "patients") -> ProjectionVersion:
        """Return one version."""
        found = (await self.operations.versions(name)).all
        return next(one for one in found if one.version == number)
