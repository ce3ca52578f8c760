"""Rows from a database, through its tool: keyset windows and claims.

A keyset cursor has a `query` and the `key` column that orders its rows; a frame reads the
window of keys after one boundary and through another. Rows of equal keys stay together, and
a NULL key is rejected, because no window would contain its row.

A claim cursor has a statement, `claim`, that stamps rows with the frame and returns them.
`:frame_id`, `:size` and `:worker` are bound where it names them. A later attempt at the same
frame must get the rows an earlier one stamped, first and in the same order, so the statement
takes rows that are free OR its own:

    WITH mine AS (
      SELECT id FROM jobs
      WHERE done_at IS NULL AND (claimed_by IS NULL OR claimed_by = :frame_id)
      ORDER BY claimed_by IS NULL, id LIMIT :size FOR UPDATE SKIP LOCKED)
    UPDATE jobs SET claimed_by = :frame_id FROM mine WHERE jobs.id = mine.id RETURNING jobs.*

The target database of the pipeline's saves must then not depend on the row: a later attempt
looks for an earlier save there before it claims anything.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from streams.errors import Refused, StreamsError
from streams.events.model import Json
from streams.events.reading import fields_of, objects_of
from streams.kafka.work.item import WorkItem
from streams.playbook.spelling import Spelling
from streams.worker.errors import TaskUnavailable, UnknownTool
from streams.worker.options import WorkerPorts
from streams.worker.port import Call, Config

Ask = Callable[[Config, str, Mapping[str, Json]], Awaitable[list[dict[str, Json]]]]
"""Runs a statement with its parameters in the configured database."""

_KEY = "_noetl_key"
# Connection, serialization, resources, operator: the same statement may succeed later.
_PASSING = ("pg.timeout", "pg.08", "pg.40", "pg.53", "pg.57")
_TYPE = re.compile(r'[A-Za-z_][\w ."()\[\],]*')


class CursorFailed(Refused):
    """The database rejects the statement of a cursor."""


class CursorUnavailable(TaskUnavailable):
    """The database cannot serve a cursor now: connections, resources or conflicts."""

    dependency = "the database of a cursor"


@dataclass(frozen=True, slots=True)
class Window:
    """Keys after `after` and through `through`, as text; None: no bound. `type` is their type."""

    after: str | None
    through: str | None
    type: str | None = None


def asker(item: WorkItem, kind: str, ports: WorkerPorts, *, fenced_by: int | None = None) -> Ask:
    """Return a function that queries the database of the cursor of `item`.

    With the fence of a frame, later attempts at it and frames that continue it get its rows.
    """
    is_fenced = fenced_by is not None
    tool = ports.tools.get(kind)
    if tool is None:
        raise UnknownTool(kind, tuple(ports.tools))
    call = Call(
        tenant_id=item.tenant_id,
        organization_id=item.organization_id,
        execution_id=item.execution_id,
        step=item.step,
        task="cursor",
        entity_id=item.entity_id if fenced_by is None else fenced_by,
        attempt=item.attempt,
        stage_id=item.stage_id,
        spelling=Spelling.NOETL if is_fenced else Spelling.SPEC,
    )

    async def ask(
        config: Config, statement: str, params: Mapping[str, Json]
    ) -> list[dict[str, Json]]:
        where = {name: config[name] for name in ("auth", "dsn") if name in config}
        # Without a fence every attempt must claim again; the stamp is what persists.
        asked = {**where, "command": statement, "params": dict(params), "fence": is_fenced}
        outcome = await tool.run(asked, call)
        if outcome.status == "error":
            raise _failure(item.step, outcome.error or {})
        rows = objects_of(fields_of(outcome.data).get("rows"))
        if rows is None:
            raise CursorFailed(f"the cursor of step {item.step}: its statement returns no rows")
        return rows

    return ask


def _failure(step: str, error: Mapping[str, Json]) -> StreamsError:
    kind, why = str(error.get("kind")), error.get("message", "no reason given")
    message = f"the cursor of step {step}: {kind}: {why}"
    return CursorUnavailable(message) if kind.startswith(_PASSING) else CursorFailed(message)


async def boundaries(ask: Ask, config: Config, size: int) -> dict[str, Json]:
    """Return the last key of every window of `size` rows, as text, with the keys' type.

    `counts` has for each the number of rows up to it.
    """
    query, key, params = _keyset(config)
    found = await ask(
        config,
        f"WITH q AS ({query}), n AS (SELECT {key} AS k, row_number() OVER (ORDER BY {key}) AS r, "  # noqa: S608 - the author's own query
        f"count(*) OVER () AS total, count(*) OVER (ORDER BY {key}) AS through FROM q) "
        "SELECT CAST(k AS text) AS boundary, CAST(pg_typeof(k) AS text) AS type, total, through, "
        "(SELECT count(*) FROM n WHERE k IS NULL) AS nulls "
        f"FROM n WHERE r % {int(size)} = 0 OR r = total ORDER BY r",
        params,
    )
    if not found:
        return {"type": "text", "boundaries": [], "counts": [], "rows": 0}
    if nulls := _count(found[0], "nulls"):
        raise CursorFailed(f"{nulls} rows have no {config['key']}; a key must not be NULL")
    bounds: dict[str, Json] = {str(one["boundary"]): _count(one, "through") for one in found}
    return {
        "type": found[0]["type"],
        "boundaries": list(bounds),
        "counts": list(bounds.values()),
        "rows": _count(found[0], "total"),
    }


async def keyset(ask: Ask, config: Config, window: Window) -> tuple[list[Json], list[str]]:
    """Return the rows of a window, and the key of each as text."""
    query, key, params = _keyset(config)
    conditions, bound = [], dict(params)
    for name, sign, value in (("after", ">", window.after), ("through", "<=", window.through)):
        if value is not None:
            bound[f"noetl_{name}"] = value
            conditions.append(f"q.{key} {sign} {_typed(f'noetl_{name}', window.type)}")
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    found = await ask(
        config,
        f"SELECT q.*, CAST(q.{key} AS text) AS {_KEY} FROM ({query}) AS q {where}ORDER BY q.{key}",  # noqa: S608 - the author's own query
        bound,
    )
    keys = [str(row.pop(_KEY)) for row in found]
    return list(found), keys


async def claim(ask: Ask, config: Config, frame_id: int, size: int, worker: str) -> list[Json]:
    """Return the rows that the author's statement stamps for the frame."""
    statement = str(config.get("claim") or "")
    known: dict[str, Json] = {"frame_id": str(frame_id), "size": size, "worker": worker}
    params = {**_params(config), **known}
    named = {k: v for k, v in params.items() if re.search(rf"(?<!:):{re.escape(k)}\b", statement)}
    return list(await ask(config, statement, named))


def _keyset(config: Config) -> tuple[str, str, Mapping[str, Json]]:
    query, key = config.get("query"), config.get("key")
    if not isinstance(query, str) or not isinstance(key, str):
        raise CursorFailed("a keyset cursor needs a `query` and the name of its `key` column")
    quoted = key.replace('"', '""')
    return query.strip().rstrip(";"), f'"{quoted}"', _params(config)


def _params(config: Config) -> Mapping[str, Json]:
    params = config.get("params") or {}
    if not isinstance(params, dict):
        raise CursorFailed("`params` of the cursor is not a mapping of names to values")
    return params


def _count(row: Mapping[str, Json], name: str) -> int:
    return int(str(row[name]))


def _typed(name: str, kind: str | None) -> str:
    """Return a parameter that is bound as text and cast to the key's type."""
    if kind is None:
        return f":{name}"
    if not _TYPE.fullmatch(kind):
        raise CursorFailed(f"{kind!r} is not a SQL type")
    return f"CAST(CAST(:{name} AS text) AS {kind})"
