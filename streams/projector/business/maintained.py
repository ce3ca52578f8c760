"""The folds of an execution: those it declares, and other versions of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streams.events.model import Json
from streams.playbook.projections import declaration_from
from streams.projector.business.declared_fold import DeclaredFold
from streams.projector.business.port import KeyedFold
from streams.projector.business.versions import ProjectionVersion


def maintained_folds(
    own: Sequence[KeyedFold], versions: Iterable[ProjectionVersion], *, with_building: bool = True
) -> tuple[KeyedFold, ...]:
    """Return the folds of an execution whose playbook and packages declare `own`.

    Every maintained version of a projection that it has is folded too, and a dropped one is not.
    """
    of_version = {(one.projection, one.version): one for one in versions}
    skipped = {"dropped"} if with_building else {"dropped", "building"}
    found = {
        (one.name, one.version): one
        for one in own
        if (known := of_version.get((one.name, one.version))) is None or known.status not in skipped
    }
    names = {one.name for one in own}
    for key, version in of_version.items():
        if key not in found and key[0] in names and version.status not in skipped:
            fold = fold_of(version.declaration)
            if fold is not None:
                found[key] = fold
    return tuple(found.values())


def fold_of(declaration: Mapping[str, Json]) -> KeyedFold | None:
    """Return the fold of a playbook's declaration; None: it is the code of a package."""
    if "plugin" in declaration:
        return None
    made = declaration_from(declaration)
    assert made is not None, "a stored declaration was checked"
    return DeclaredFold(made)
