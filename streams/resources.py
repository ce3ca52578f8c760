"""Paths of the project's data files: avro_schemas/, topics/, connectors/.

They lie at the top of the repository, where people read and review them; a wheel carries
copies under `streams/_assets/`. Code asks here and need not know which of the two it runs from.
"""

from __future__ import annotations

from pathlib import Path

from streams.errors import Refused

_PACKAGE = Path(__file__).resolve().parent


class MissingAssets(Refused):
    """A folder of data files that every installation carries is not there."""

    def __init__(self, name: str, looked_in: list[Path]) -> None:
        places = " and ".join(str(place) for place in looked_in)
        super().__init__(
            f"{name}/: no such folder in {places}; "
            "run from a complete checkout or reinstall the noetl-streams package"
        )
        self.name = name


def folder(name: str) -> Path:
    """Return the folder of data files called `name`, e.g. `avro_schemas`.

    An installed wheel's copy wins: it belongs to the code that is running.

    Raises:
        MissingAssets: neither the package nor the repository around it has the folder.
    """
    candidates = [_PACKAGE / "_assets" / name, _PACKAGE.parent / name]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise MissingAssets(name, candidates)
