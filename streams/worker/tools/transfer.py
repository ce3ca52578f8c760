"""The tool that copies rows from a source to a table, in one step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from streams.events.model import Json
from streams.playbook.errors import BadSink
from streams.playbook.sinks.rows import save_of
from streams.playbook.spelling import Spelling
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome, Tool
from streams.worker.tools.task_config import failed, mapping, seconds, text, whole

MODES: Mapping[str, str] = {"append": "append", "replace": "overwrite", "upsert": "upsert"}
CHUNK_ROWS = 1000
_HTTP = ("url", "endpoint", "method", "params", "headers", "json", "payload", "body", "timeout")
_LISTS = ("data", "items", "results", "records", "rows")
Row = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class TransferTools:
    """The tools that read and write: http, postgres, snowflake, and the sinks' own."""

    http: Tool
    postgres: Tool
    snowflake: Callable[[], Tool]
    sink: Tool


class _EndFailed(Exception):
    """The source or the target failed, with its outcome."""

    def __init__(self, end: Literal["source", "target"], outcome: Outcome) -> None:
        super().__init__(end)
        self.end, self.outcome = end, outcome


class TransferTool:
    """Copies the rows of `source` to `target`.

    `source` is {type: http, url …}, or {type: postgres or snowflake, auth, query}; `target` is
    {type: postgres or snowflake, auth, table, mapping: {column: field}, key}, or for postgres a
    `query` with placeholders like :column. `mode` is append, replace or upsert. Postgres is
    written in one transaction behind a fence, in statements of `chunk_size` rows.
    """

    def __init__(self, tools: TransferTools) -> None:
        self._tools = tools
        self._snowflake: Tool | None = None

    async def run(self, config: Config, call: Call) -> Outcome:
        """Read all rows, then write them.

        Raises:
            Unavailable: the source or the target cannot be reached.
        """
        try:
            source, target = mapping(config, "source"), mapping(config, "target")
            mode = str(config.get("mode") or target.get("mode") or "append")
            if mode not in MODES:
                raise BadConfig(f"'mode' is {mode!r}, not one of {', '.join(MODES)}")
            limit = seconds(config, call, None)
            async with asyncio.timeout(limit):
                found = await self._read(source, call)
                rows = [_mapped(row, mapping(target, "mapping")) for row in found]
                chunk = whole(config, "chunk_size") or CHUNK_ROWS
                written = await self._write(target, mode, rows, max(1, chunk), call)
        except TimeoutError:
            return failed("transfer.timeout", f"it took longer than {limit} s")
        except (BadConfig, BadSink) as error:
            return failed("transfer.config", str(error))
        except _EndFailed as failure:
            return _failed_end(failure)
        data: dict[str, Json] = {"status": "success", "rows_read": len(rows)}
        data |= {"rows_written": written, "row_count": written, "mode": mode}
        data |= {"source": source.get("type"), "target": target.get("type")}
        return Outcome(status="success", data={**data, "table": target.get("table")})

    async def close(self) -> None:
        """Close the tools."""
        for tool in (self._tools.http, self._tools.postgres, self._tools.sink, self._snowflake):
            if tool is not None:
                await tool.close()

    async def _read(self, source: Config, call: Call) -> list[Row]:
        kind, own = source.get("type"), replace(call, spelling=Spelling.NOETL)
        if kind == "http":
            asked = {name: source[name] for name in (*_HTTP, "auth", "data") if name in source}
            outcome = _well("source", await self._tools.http.run(asked, own))
            return _listed(_as_config(outcome.data).get("data"), source)
        if kind not in ("postgres", "snowflake"):
            raise BadConfig(f"'source.type' is {kind!r}, not http, postgres or snowflake")
        asked = {"command": text(source, "query", "command"), "auth": source.get("auth")}
        tool = self._tools.postgres if kind == "postgres" else self._opened()
        outcome = _well("source", await tool.run(asked, own))
        return _rows(_as_config(outcome.data).get("rows"))

    async def _write(
        self, target: Config, mode: str, rows: Sequence[Row], chunk: int, call: Call
    ) -> int:
        kind, own = target.get("type"), replace(call, spelling=Spelling.SPEC)
        named = target.get("key") or target.get("keys") or []
        key = tuple(map(str, named if isinstance(named, list) else [named]))
        if mode == "upsert" and not key and target.get("query") is None:
            raise BadConfig("mode upsert needs 'target.key', the columns that identify a row")
        if kind == "postgres":
            config = {"auth": target.get("auth"), "saves": _saves(target, mode, key, rows, chunk)}
            outcome = _well("target", await self._tools.postgres.run(config, own))
            count = _as_config(outcome.data).get("row_count")
            return int(count) if isinstance(count, int) else 0
        if kind != "snowflake":
            raise BadConfig(f"'target.type' is {kind!r}, not postgres or snowflake")
        sink: dict[str, Json] = {"storage": "snowflake", "mode": MODES[mode]}
        sink |= {"auth": target.get("auth"), "table": text(target, "table")}
        sink |= {"key": [*key], "data": [dict(row) for row in rows]}
        _well("target", await self._tools.sink.run(sink, own))
        return len(rows)

    def _opened(self) -> Tool:
        if self._snowflake is None:
            self._snowflake = self._tools.snowflake()
        return self._snowflake


def _saves(
    target: Config, mode: str, key: tuple[str, ...], rows: Sequence[Row], chunk: int
) -> list[Json]:
    """Return the statements of the target with their rows, which share a transaction."""
    query, saves = target.get("query"), list[Json]()
    if query is not None:
        for some in _chunks(rows, chunk):
            saves.append({"command": str(query), "rows": [dict(row) for row in some]})
        return saves or [{"command": "SELECT 1"}]
    table, how = text(target, "table"), MODES[mode]
    for some in _chunks(rows, chunk) or [()]:
        made = save_of(table, how, key if how == "upsert" else (), some)
        parts = made.get("saves")
        saves += parts if isinstance(parts, list) else [made]
        how = "append" if how == "overwrite" else how  # only the first chunk empties the table
    return saves


def _chunks(rows: Sequence[Row], size: int) -> list[Sequence[Row]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _well(end: Literal["source", "target"], outcome: Outcome) -> Outcome:
    if outcome.status == "error":
        raise _EndFailed(end, outcome)
    return outcome


def _failed_end(failure: _EndFailed) -> Outcome:
    """Return the failure of one end as that of the transfer."""
    error = dict(failure.outcome.error or {})
    error["message"] = f"{failure.end}: {error.get('message')}"
    return Outcome(status="error", error=error, detail=failure.outcome.detail)


def _as_config(data: Json) -> Config:
    return data if isinstance(data, dict) else {}


def _listed(body: Json, source: Config) -> list[Row]:
    """Return the rows of an answer: a list, or the list under `path` or a usual name."""
    path = source.get("path") or source.get("data_path")
    if path is not None:
        return _rows(_field(_as_config(body), str(path)))
    if isinstance(body, dict):
        lists = [body[name] for name in _LISTS if isinstance(body.get(name), list)]
        return _rows(lists[0] if lists else [body])
    return _rows(body)


def _rows(value: Json) -> list[Row]:
    items = value if isinstance(value, list) else [value]
    rows: list[Row] = [one for one in items if isinstance(one, dict)]
    if len(rows) != len(items):
        raise BadConfig("the source's answer is not a list of rows; name it with 'source.path'")
    return rows


def _mapped(row: Row, columns: Mapping[str, Json]) -> Row:
    """Return a row with the target's columns, or as it is without a mapping."""
    return {name: _field(row, str(path)) for name, path in columns.items()} if columns else row


def _field(row: Row, path: str) -> Json:
    """Return the value at a dotted path; null where there is none."""
    if path in row:
        return row[path]
    value: Json = dict(row)
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
