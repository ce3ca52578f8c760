"""Renders the event catalogue as docs/events.md."""

from __future__ import annotations

from collections.abc import Iterator

from streams.events.catalogue import Catalogue, DataField, EventType, MetaField, RootType

INTRODUCTION = """# Events

All event types, generated from `streams/events/catalogue.yaml` by `streams events document`.
The Avro schema of the envelope is `avro_schemas/Event.avsc`.

A *root* is the unit of order: it picks the topic and the Kafka key, and its events have a
gap-free `seq`. An *entity* is a part of a root with its own stream, for compare-and-swap by
`expected_version`. The *writers* are the roles that append the event, the main one first.
A *claim* can be made once per root: a second event with it is skipped, with its whole batch.
*User data* is only in the columns listed so; `meta` holds routing values. *Planned* types are
reserved: no code writes them yet.
"""


def document(catalogue: Catalogue) -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    for root in catalogue.roots.values():
        lines += _root(root, [kind for kind in catalogue.types.values() if kind.root == root.name])
    return "\n".join(lines).rstrip() + "\n"


def _root(root: RootType, kinds: list[EventType]) -> Iterator[str]:
    yield f"## {root.name}\n"
    yield f"{root.why.capitalize()}. Topic `{root.topic}`.\n"
    yield "| event | entity | writers | meta | user data | payload | rules | why |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from map(_row, kinds)
    yield ""


def _row(kind: EventType) -> str:
    cells = (
        f"`{kind.name}` v{kind.version}",
        kind.entity,
        ", ".join(kind.writers),
        ", ".join(map(_field, kind.meta.values())),
        ", ".join(_user_data(kind)),
        "" if kind.payload == "none" else kind.payload,
        ", ".join(_rules(kind)),
        kind.why,
    )
    return "| " + " | ".join(cells) + " |"


def _field(field: MetaField) -> str:
    kind = " or ".join(field.choices) if field.choices else field.kind
    return f"`{field.name}`{'' if field.required else '?'} {kind}"


def _user_data(kind: EventType) -> Iterator[str]:
    """Yield the columns with user data, each with its keys where they are declared."""
    declared = {"context": kind.context, "result": kind.result}
    for column in kind.user_data:
        match declared.get(column):
            case (_, *_) as keys:
                names = ", ".join(f"`{one.name}`{'' if one.required else '?'}" for one in keys)
                yield f"{column} ({names})"
            case DataField(kind=name):
                yield f"{column} ({name})"
            case _:
                yield column


def _rules(kind: EventType) -> Iterator[str]:
    if kind.planned:
        yield "planned"
    if kind.columns:
        yield "needs " + " and ".join(kind.columns)
    if kind.claim:
        yield f"claims `{kind.claim}`"
    if kind.ends:
        yield "ends the root"
    if kind.reopens:
        yield "opens an ended root again"
    if kind.after_end:
        yield "may follow the end"
