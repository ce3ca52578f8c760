"""Extensions of DuckDB: installed before, from a Python package, or downloaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import duckdb

from streams.worker.errors import BadConfig


def load_extension(session: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension into a session, and install it first where that is necessary.

    Raises:
        BadConfig: it is not available.
    """
    try:
        session.execute(f"LOAD {name}")
        return
    except duckdb.Error:
        pass
    packaged = packaged_extension(name)
    try:
        session.execute(f"INSTALL {name}" if packaged is None else f"INSTALL '{packaged}'")
        session.execute(f"LOAD {name}")
    except duckdb.Error as error:
        package = f"duckdb-extension-{name.replace('_', '-')}"
        raise BadConfig(
            f"DuckDB's extension {name!r} is not installed on this worker and cannot be "
            f"downloaded: {str(error).partition(chr(10))[0][:200]}; run INSTALL {name} there "
            f"once, with access to extensions.duckdb.org, or pip install {package} in the "
            f"version of DuckDB, {duckdb.__version__}"
        ) from error


def packaged_extension(name: str) -> Path | None:
    """Return the file of the package `duckdb-extension-<name>` for this version of DuckDB."""
    spec = find_spec(f"duckdb_extension_{name}")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
    file = folder / f"{name}.duckdb_extension"
    return file if file.exists() else None
