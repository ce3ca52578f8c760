"""Business projections of a playbook: tables by key, aggregated from rows of a step or events."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streams.events.catalogue import catalogue
from streams.events.model import Json
from streams.playbook.declarations import (
    FUNCTIONS,
    ROWS,
    Aggregate,
    Declaration,
    Source,
    event_columns,
)
from streams.playbook.shape import Anything, Either, Fields, Items, Number, Text, nearest
from streams.playbook.yaml_document import (
    Authored,
    Document,
    Path,
    as_list,
    as_mapping,
)

MOST_KEYS = 8
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_columns = Either((Text(), Items(Text())), "Columns that identify a row of the projection.")
PROJECTIONS = Items(
    Fields(
        "projection",
        {
            "name": Text("Its name, in the tenant and organization."),
            "version": Number("Raised when the declaration changes; default: 1.", 1),
            "source": Fields(
                "projection source",
                {
                    "step": Text("A loop: the rows that it returns."),
                    "event": Text("A type of event: its fields."),
                },
                "Where its rows come from: one of both.",
            ),
            "key": _columns,
            "aggregates": Fields(
                "aggregates",
                {},
                "Names of the columns to compute.",
                rest=Fields("aggregate", {one: Text("A column.") for one in FUNCTIONS}),
            ),
            "where": Fields(
                "projection filter",
                {},
                "Only rows with this value, or one of these, in each of these columns.",
                rest=Anything(),
            ),
        },
        "A table that is maintained from the log, by key.",
        required=("name", "source", "key", "aggregates"),
    ),
    "Tables that are maintained from the log, by key.",
)


def projections_of(document: Document, top: Authored) -> tuple[Declaration, ...]:
    """Return the declared projections; problems are reported at their places."""
    found: dict[str, Declaration] = {}
    workflow = [as_mapping(step) for step in as_list(top.get("workflow"))]
    loops = {str(step["step"]): "loop" in step for step in workflow if "step" in step}
    for at, block in enumerate(as_list(top.get("projections"))):
        path: Path = ("projections", at)
        made = _declaration(document, as_mapping(block), path, loops)
        if made is None:
            continue
        if made.name in found:
            document.report((*path, "name"), f"projection {made.name!r} is declared twice")
        found.setdefault(made.name, made)
    return tuple(found.values())


def declaration_from(value: Mapping[str, Json]) -> Declaration | None:
    """Return the declaration in its own JSON; None if it is not one, but a plug-in's."""
    source = as_mapping(value.get("source"))
    return _declaration(Document(), value, (), {str(source.get("step")): True})


def _declaration(
    document: Document, block: Authored, path: Path, loops: Mapping[str, bool]
) -> Declaration | None:
    source = _source(document, as_mapping(block.get("source")), (*path, "source"), loops)
    key, aggregates = _key(document, block, path), _aggregates(document, block, path)
    name, version = block.get("name"), block.get("version", 1)
    if not isinstance(name, str) or not isinstance(version, int):
        return None
    if not _NAME.fullmatch(name):
        hint = "use lower-case letters, digits and _"
        document.report((*path, "name"), f"{name!r} is not a valid name of a projection", hint)
        return None
    if source is None or not key or not aggregates:
        return None
    made = Declaration(
        name=name,
        version=version,
        source=source,
        key=key,
        aggregates=aggregates,
        where=_where(document, block, path),
    )
    _check_columns(document, made, path)
    return made


def _source(
    document: Document, block: Authored, path: Path, loops: Mapping[str, bool]
) -> Source | None:
    step, event = block.get("step"), block.get("event")
    if (step is None) == (event is None):
        document.report(path, "needs either `step` or `event`")
        return None
    if isinstance(step, str):
        if step not in loops:
            hint = nearest(step, loops) or f"there are {', '.join(loops)}"
            document.report((*path, "step"), f"there is no step {step!r}", hint)
            return None
        if not loops[step]:
            hint = "use a step with `loop`, or the event command.completed"
            document.report((*path, "step"), f"step {step!r} returns no rows", hint)
            return None
        return Source("step", step)
    if not isinstance(event, str):
        return None
    types = [one.name for one in catalogue().types.values() if one.root == "execution"]
    if event not in types:
        hint = nearest(event, types) or "see `streams events list --root execution`"
        document.report((*path, "event"), f"{event!r} is not an event of an execution", hint)
        return None
    return Source("event", event)


def _key(document: Document, block: Authored, path: Path) -> tuple[str, ...]:
    value = block.get("key")
    columns = [value] if isinstance(value, str) else as_list(value)
    found = tuple(one for one in columns if isinstance(one, str) and one)
    if "key" in block and not 0 < len(found) <= MOST_KEYS:
        document.report((*path, "key"), f"needs 1 to {MOST_KEYS} columns")
        return ()
    if len(set(found)) < len(found):
        document.report((*path, "key"), "names a column twice")
        return ()
    return found


def _aggregates(document: Document, block: Authored, path: Path) -> tuple[Aggregate, ...]:
    found, here = [], (*path, "aggregates")
    if block.get("aggregates") == {}:
        document.report(here, "computes nothing", "for example `rows: {count: '*'}`", at_key=True)
    for name, value in as_mapping(block.get("aggregates")).items():
        one = as_mapping(value)
        if len(one) != 1:
            document.report((*here, name), f"needs one of {', '.join(FUNCTIONS)}", at_key=True)
            continue
        if not _NAME.fullmatch(name):
            hint = "use lower-case letters, digits and _"
            document.report((*here, name), f"{name!r} is not a valid name", hint, at_key=True)
            continue
        for function in FUNCTIONS:
            column = one.get(function)
            if not isinstance(column, str):
                continue
            if column == ROWS and function != "count":
                document.report((*here, name), f"{function} needs a column, not {ROWS!r}")
                continue
            found.append(Aggregate(name, function, column))
    return tuple(found)


def _where(document: Document, block: Authored, path: Path) -> dict[str, tuple[Json, ...]]:
    found: dict[str, tuple[Json, ...]] = {}
    for column, value in as_mapping(block.get("where")).items():
        values = value if isinstance(value, list) else [value]
        if any(isinstance(one, (list, dict)) for one in values):
            at = (*path, "where", column)
            document.report(at, "is compared with texts, numbers, true, false and null only")
        else:
            found[column] = tuple(values)
    return found


def _check_columns(document: Document, made: Declaration, path: Path) -> None:
    """Report columns that an event does not have; those of a step are known when it runs."""
    if made.source.kind != "event":
        return
    known = event_columns(made.source.name)
    for column in sorted(made.columns - set(known)):
        hint = nearest(column, known) or f"it has {', '.join(known)}"
        document.report(path, f"event {made.source.name} has no field {column!r}", hint)
