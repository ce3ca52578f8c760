"""Resolution of file names below the sink folder."""

from __future__ import annotations

from pathlib import Path

from streams.worker.errors import BadConfig


def below(folder: Path | None, name: str) -> Path:
    """Return the path of a file below `folder`.

    Raises:
        BadConfig: there is no sink folder, or the name leads out of it.
    """
    if folder is None:
        raise BadConfig("this deployment has no folder for files; set `sinks.folder`")
    if "\0" in name or ".." in Path(name).parts or not name.strip():
        raise BadConfig(f"{name!r} is not a valid file name: it must be below the sink folder")
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()) or place == folder.resolve():
        raise BadConfig(f"{name!r} leads out of the sink folder")
    return place
