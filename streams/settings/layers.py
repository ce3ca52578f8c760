"""Layers of settings; every value records its origin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """One value at its path in the settings."""

    path: Path
    value: object
    origin: str


class Layers:
    """Merged layers; later ones win, leaf by leaf."""

    def __init__(self) -> None:
        self._entries: dict[Path, LayerEntry] = {}
        self.clashes: list[tuple[LayerEntry, LayerEntry]] = []
        """A value, and a later layer's entry below it: a contradiction."""

    def lay(self, layer: Iterable[LayerEntry]) -> None:
        """Add `layer` on top."""
        for entry in layer:
            self._put(entry)

    def settle(self, paths: Collection[Path], layer: Iterable[LayerEntry]) -> list[LayerEntry]:
        """Replace everything at or below `paths` by `layer`; return the overruled entries."""
        allowed = [entry for entry in layer if lies_in(entry.path, paths)]
        others = [entry for entry in self._entries.values() if lies_in(entry.path, paths)]
        overruled = [entry for entry in others if entry not in allowed]
        for entry in overruled:
            del self._entries[entry.path]
        self.lay(allowed)
        return overruled

    def _put(self, entry: LayerEntry) -> None:
        below = [path for path in self._entries if lies_in(path, [entry.path])]
        if below and entry.path not in below and entry.value in (None, {}):
            return  # an empty section removes nothing
        above = [entry.path[:depth] for depth in range(1, len(entry.path))]
        for path in (*below, *above):
            under = self._entries.pop(path, None)
            if under is not None and path in above and under.value not in (None, {}):
                self.clashes.append((under, entry))
        self._entries[entry.path] = entry

    def entries(self) -> list[LayerEntry]:
        """Return the merged entries."""
        return list(self._entries.values())

    def tree(self) -> dict[str, object]:
        """Return the values as nested mappings."""
        root: dict[str, object] = {}
        for entry in self._entries.values():
            here = root
            for part in entry.path[:-1]:
                step = here.setdefault(part, {})
                assert isinstance(step, dict)
                here = step
            here[entry.path[-1]] = entry.value
        return root

    def origin(self, path: Path) -> str | None:
        """Return the origin of the value at `path`, or None if no layer has it.

        A list is one value, so a path into it has the list's origin; a section has that
        of its first value.
        """
        for depth in range(len(path), 0, -1):
            if path[:depth] in self._entries:
                return self._entries[path[:depth]].origin
        return next((e.origin for p, e in self._entries.items() if p[: len(path)] == path), None)


def lies_in(path: Path, sections: Iterable[Path]) -> bool:
    """Return whether `path` is one of `sections` or below one."""
    return any(path[: len(section)] == section for section in sections)


def entries_of(values: Mapping[str, object], origin: str, path: Path = ()) -> list[LayerEntry]:
    """Flatten nested mappings of one origin."""
    found: list[LayerEntry] = []
    for key, value in values.items():
        here = (*path, str(key))
        if isinstance(value, Mapping) and value:
            found += entries_of(value, origin, here)
        else:
            found.append(LayerEntry(here, value, origin))
    return found
