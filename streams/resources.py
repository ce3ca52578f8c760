"""Paths of the project's data files: avro_schemas/, topics/, connectors/.

In a checkout they are at the top of the repository, in a wheel under `streams/_assets/`.
"""

from __future__ import annotations

from pathlib import Path

from streams.errors import Refused

_PACKAGE = Path(__file__).resolve().parent


class MissingAssets(Refused):
    """A folder of data files that every installation has is missing."""

    def __init__(self, name: str, searched: list[Path]) -> None:
        folders = " and ".join(str(path) for path in searched)
        super().__init__(
            f"{name}/: no such folder in {folders}; "
            "run from a complete checkout or reinstall the noetl-streams package"
        )
        self.name = name


def folder(name: str) -> Path:
    """Return the folder of data files called `name`, e.g. `avro_schemas`.

    An installed wheel's copy takes precedence: it matches the running code.

    Raises:
        MissingAssets: neither the package nor the repository around it has the folder.
    """
    candidates = [_PACKAGE / "_assets" / name, _PACKAGE.parent / name]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise MissingAssets(name, candidates)
