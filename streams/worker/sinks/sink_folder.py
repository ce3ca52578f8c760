"""Resolves file names of authors below one folder, and refuses those that lead out of it."""

from __future__ import annotations

from pathlib import Path

from streams.worker.errors import BadConfig


def below(folder: Path | None, name: str) -> Path:
    """Return the place of a file that an author names.

    Raises:
        BadConfig: there is no folder for files here, or the name leads out of it.
    """
    if folder is None:
        raise BadConfig("this deployment has no folder for files; set `sinks.folder`")
    if "\0" in name or ".." in Path(name).parts or not name.strip():
        raise BadConfig(f"{name!r} is not a valid file name: it must lie below the folder of sinks")
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()) or place == folder.resolve():
        raise BadConfig(f"{name!r} leads out of the folder of sinks")
    return place
