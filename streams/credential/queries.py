"""Named SQL, read once from the files beside this one."""

from functools import lru_cache
from importlib.resources import files


@lru_cache
def query(name: str) -> str:
    """Return the text of `sql/<name>.sql`."""
    return files("streams.credential").joinpath(f"sql/{name}.sql").read_text("utf-8")
