"""The published JSON Schema is the one the code describes, and says what the check says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streams.playbook.grammar import json_schema

PUBLISHED = Path(__file__).resolve().parents[3] / "docs" / "playbook.schema.json"


def test_the_published_schema_is_fresh() -> None:
    fresh = PUBLISHED.read_text("utf-8") == json_schema()
    assert fresh, "run `streams playbook schema --out docs/playbook.schema.json`"


def test_every_reference_in_it_leads_somewhere() -> None:
    page = json.loads(json_schema())
    assert _references(page) <= {f"#/$defs/{name}" for name in page["$defs"]}
    assert "#/$defs/step" in _references(page)


def test_it_knows_what_the_language_knows() -> None:
    definitions = json.loads(json_schema())["$defs"]
    assert definitions["loop"]["additionalProperties"] is False
    modes = definitions["loop_spec"]["properties"]["mode"]["enum"]
    assert modes == ["sequential", "parallel", "cursor", "fanout"]
    assert definitions["playbook"]["required"] == ["apiVersion", "kind", "workflow"]


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(_references(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(_references(item) for item in value))
    return set()
