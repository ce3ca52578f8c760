"""Required options of storages: address, name, form of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams.playbook.shape import nearest
from streams.playbook.sinks.sink_block import SinkBlock
from streams.playbook.yaml_document import Authored, Path, as_mapping

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
"""Required fields of built-in storages, and the keys of `spec` for them."""
_PAIR = ("key", "value", "ttl")


def needs(sink: SinkBlock) -> Iterator[OptionProblem]:
    """Yield options that are missing, or would be rejected when the sink runs."""
    block = sink.written
    if (lacking := lacks(sink)) is not None:
        yield lacking
    if sink.storage in ("file", "s3", "gcs", "duckdb"):
        yield from _name_problems(sink)
    if sink.storage == "kv":
        yield from _pair_problems(block)
    is_append = (block.get("mode"), block.get("format")) == ("append", "parquet")
    if sink.storage == "file" and is_append:
        hint = "use mode overwrite, or format json or csv"
        yield ("format",), "nothing can be appended to a parquet file", hint


def lacks(sink: SinkBlock) -> OptionProblem | None:
    """Return the required field that neither `spec` nor a credential can have."""
    what, keys = _NEEDS.get(sink.full_name, ("", ()))
    if not what or any(key in sink.spec for key in keys) or sink.has_credential:
        return None
    hint = f"give spec: {{{keys[0]}: …}}, or `auth` with a credential that has it"
    return (), f"a {sink.storage} sink needs {what}", hint


def _name_problems(sink: SinkBlock) -> Iterator[OptionProblem]:
    for key in ("path", "key", "database"):
        name = sink.spec.get(key)
        if not isinstance(name, str) or "{{" in name:
            continue
        if name.startswith("/") or ".." in name.split("/") or "\0" in name or not name.strip():
            under = "the bucket" if sink.storage in ("s3", "gcs") else "the folder of sinks"
            what = f"{name!r} is not a valid name in {under}"
            yield ("spec", key), what, "write it without a leading / and without .."


def _pair_problems(block: Authored) -> Iterator[OptionProblem]:
    named = next((key for key in ("data", "args") if isinstance(block.get(key), dict)), None)
    if named is None:
        return
    pair = as_mapping(block[named])
    for name in pair:
        if name not in _PAIR:
            hint = nearest(name, _PAIR) or f"it takes {', '.join(_PAIR)}"
            yield (named, name), f"a kv sink does not take {name!r}", hint
    for name in _PAIR[:2]:
        if name not in pair:
            yield (named,), f"a kv sink needs {name!r} in `{named}`", "write {key: …, value: …}"
