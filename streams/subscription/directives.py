"""Header directives: what the headers of a message set. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams.errors import PoisonRecord
from streams.events.model import Json
from streams.subscription.model import Control, Directive, HeaderRules

MAX_BAGGAGE_CHARS = 8192


class UnusableMessage(PoisonRecord):
    """A message that can never start its playbook; the message of the error has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectiveValues:
    """What the headers of a message set; None where no header did."""

    playbook: str | None = None
    execution_pool: str | None = None
    priority: Json = None
    idempotency_key: str | None = None
    content_type: str | None = None
    schema_hint: str | None = None

    def in_workload(self) -> dict[str, Json]:
        """Return the values that the workload carries."""
        given: dict[str, Json] = {
            "idempotency_key": self.idempotency_key,
            "content_type": self.content_type,
            "priority": self.priority,
            "schema_hint": self.schema_hint,
        }
        return {name: value for name, value in given.items() if value is not None}


def directive_values(rules: HeaderRules, headers: Mapping[str, Json]) -> DirectiveValues:
    """Return what the headers set; of several directives with one control the last wins.

    A header without a value, or with an empty one, sets nothing.

    Raises:
        UnusableMessage: a value is not text, not in `map`, or not in `allowed`.
    """
    found: dict[Control, Json] = {}
    for directive in rules.directives:
        raw = headers.get(directive.header)
        if raw in (None, ""):
            continue
        if not isinstance(raw, str):
            raise UnusableMessage(f"header {directive.header}: is not UTF-8 text")
        found[directive.controls] = _value(directive, raw)
    return DirectiveValues(
        playbook=_text(found.get(Control.PLAYBOOK)),
        execution_pool=_text(found.get(Control.POOL)),
        priority=found.get(Control.PRIORITY),
        idempotency_key=_text(found.get(Control.KEY)),
        content_type=_text(found.get(Control.CONTENT_TYPE)),
        schema_hint=_text(found.get(Control.SCHEMA_HINT)),
    )


def baggage_of(rules: HeaderRules, header: Json) -> dict[str, Json]:
    """Return the allowed members of a W3C `baggage` header, without their properties."""
    if not rules.baggage or not isinstance(header, str) or len(header) > MAX_BAGGAGE_CHARS:
        return {}
    members = (member.partition(";")[0].partition("=") for member in header.split(","))
    found = {name.strip(): value.strip() for name, _, value in members}
    return {name: found[name] for name in rules.baggage if name in found}


def _value(directive: Directive, raw: str) -> Json:
    value: Json = raw
    if directive.map is not None:
        if raw not in directive.map:
            known = ", ".join(directive.map)
            raise UnusableMessage(
                f"header {directive.header}: {raw[:100]!r} is not in the map of "
                f"{directive.controls}; it has {known}"
            )
        value = directive.map[raw]
    if directive.allowed and value not in directive.allowed:
        raise UnusableMessage(
            f"header {directive.header}: {str(value)[:100]!r} is not allowed for "
            f"{directive.controls}; allowed are {', '.join(directive.allowed)}"
        )
    return value


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
