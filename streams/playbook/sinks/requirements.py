"""What a storage must be told before it can write: an address, a place, the form of its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams.playbook.auth import AUTH_KEYS
from streams.playbook.shape import nearest
from streams.playbook.yaml_document import Path

OptionProblem = tuple[Path, str, str | None]
_NEEDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "duckdb": ("a file", ("database", "path")),
    "s3": ("a bucket", ("bucket",)),
    "gcs": ("a bucket", ("bucket",)),
    "kv.redis": ("an address", ("url", "dsn")),
    "graph.neo4j": ("an address", ("url", "uri", "dsn")),
    "graph.ladybug": ("a file", ("path", "database")),
    "bigquery.bigquery": ("a project", ("project",)),
    "snowflake.snowflake": ("an account", ("account",)),
}
"""What storages of ours need, and the keys of `spec` that say it where no credential does."""
_PAIR = ("key", "value", "ttl")


def needs(storage: str, driver: str, block: Mapping[str, Any]) -> Iterator[OptionProblem]:
    """Say what is missing, or would be refused for certain when it runs."""
    given = block.get("spec")
    spec = given if isinstance(given, dict) else {}
    if (lacking := lacks(storage, driver, block)) is not None:
        yield lacking
    if storage in ("file", "s3", "gcs", "duckdb"):
        yield from _of_place(storage, spec)
    if storage == "kv":
        yield from _of_pair(block)
    if storage == "file" and (block.get("mode"), block.get("format")) == ("append", "parquet"):
        hint = "use mode overwrite, or format json or csv"
        yield ("format",), "nothing can be appended to a parquet file", hint


def lacks(storage: str, driver: str, block: Mapping[str, Any]) -> OptionProblem | None:
    """Say what neither `spec` tells nor a credential could."""
    given = block.get("spec")
    spec = given if isinstance(given, dict) else {}
    what, keys = _NEEDS.get(f"{storage}.{driver}" if driver else storage, ("", ()))
    if not what or any(key in spec for key in keys) or any(key in block for key in AUTH_KEYS):
        return None
    hint = f"give spec: {{{keys[0]}: …}}, or `auth` with a credential that has it"
    return (), f"a {storage} sink needs {what}", hint


def _of_place(storage: str, spec: Mapping[str, Any]) -> Iterator[OptionProblem]:
    for key in ("path", "key", "database"):
        name = spec.get(key)
        if not isinstance(name, str) or "{{" in name:
            continue
        if name.startswith("/") or ".." in name.split("/") or "\0" in name or not name.strip():
            under = "the bucket" if storage in ("s3", "gcs") else "the folder of sinks"
            what = f"{name!r} is no name in {under}"
            yield ("spec", key), what, "write it without a leading / and without .."


def _of_pair(block: Mapping[str, Any]) -> Iterator[OptionProblem]:
    named = next((key for key in ("data", "args") if isinstance(block.get(key), dict)), None)
    if named is None:
        return
    for name in block[named]:
        if name not in _PAIR:
            hint = nearest(str(name), _PAIR) or f"it takes {', '.join(_PAIR)}"
            yield (named, name), f"a kv sink does not take {name!r}", hint
    for name in _PAIR[:2]:
        if name not in block[named]:
            yield (named,), f"a kv sink needs {name!r} in `{named}`", "write {key: …, value: …}"
