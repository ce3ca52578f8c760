"""Compiler of `output`: where a result is stored, and which fields stay at hand."""

from __future__ import annotations

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.problem import Severity
from streams.playbook.result_policy import ResultPolicy, policy_of
from streams.playbook.yaml_document import Authored, Path, as_list, as_mapping


def policy_from(draft: PlaybookDraft, holder: Authored, path: Path) -> ResultPolicy | None:
    """Return the result policy of a step's or task's `output`; None if it has none."""
    given, listed = as_mapping(holder.get("output")), holder.get("output_select")
    if isinstance(listed, dict):
        hint = "list the names of fields"
        at = (*path, "output_select")
        draft.report(at, "a mapping has no effect here", hint, Severity.WARNING, at_key=True)
    names = as_list(given.get("output_select")) or as_list(listed)
    if not given and not names:
        return None
    selected: list[Json] = [
        {"path": _json_path(str(name)), "as": str(name).rpartition(".")[2]} for name in names
    ]
    selected += as_list(given.get("select"))
    result: dict[str, Json] = {"select": selected} if selected else {}
    result |= {key: given[key] for key in ("store", "inline_max_bytes") if key in given}
    return policy_of(draft, {"result": result}, (*path, "output"), reserved=frozenset())


def _json_path(name: str) -> str:
    return "$" + "".join(f"['{part}']" for part in name.split("."))
