"""The workbook: named actions, and the tasks that refer to them."""

from __future__ import annotations

from collections.abc import Mapping

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.shape import nearest
from streams.playbook.yaml_document import Authored, Path


def workbook_of(draft: PlaybookDraft, value: Json) -> dict[str, Authored]:
    """Return the named actions as tasks."""
    found: dict[str, Authored] = {}
    items: list[tuple[str | int, Json]] = []
    if isinstance(value, dict):
        items = [*value.items()]
    elif isinstance(value, list):
        items = [*enumerate(value)]
    for key, action in items:
        if not isinstance(action, dict):
            continue
        name = key if isinstance(key, str) else action.get("name")
        path: Path = ("workbook", key)
        if not isinstance(name, str):
            draft.report(path, "an action needs a name")
            continue
        if name in found:
            draft.report(path, f"action {name!r} is defined twice")
        found[name] = _action(action)
    return found


def resolve_action(
    draft: PlaybookDraft, config: Authored, path: Path, workbook: Mapping[str, Authored]
) -> Authored:
    """Return a task merged with the action it names; an unknown one is reported."""
    if (found := with_action(config, workbook)) is not None:
        return found
    name = _action_name(config)
    hint = nearest(str(name), tuple(workbook)) or "name one of `workbook`"
    draft.report(path, f"there is no action {name!r} in the workbook", hint)
    return {"kind": "noop"}


def with_action(config: Authored, workbook: Mapping[str, Authored]) -> Authored | None:
    """Return a task merged with the action it names, if any; its own keys win. None: unknown."""
    named = config.get("kind") == "workbook" or ("action" in config and "kind" not in config)
    if not named:
        return config
    name = _action_name(config)
    action = workbook.get(name) if isinstance(name, str) else None
    if action is None:
        return None
    own = {k: v for k, v in config.items() if k not in ("kind", "action", "name")}
    args, defaults = own.get("args"), action.get("args")
    if isinstance(args, dict) and isinstance(defaults, dict):
        own["args"] = {**defaults, **args}
    return {**action, **own}


def _action_name(config: Authored) -> Json:
    return config.get("action") or config.get("name")


def _action(action: Authored) -> Authored:
    rest = {
        key: item for key, item in action.items() if key not in ("name", "tool", "type", "desc")
    }
    tool = action.get("tool")
    if isinstance(tool, dict):
        return {**rest, **tool}
    return {**rest, "kind": tool or action.get("type") or action.get("kind")}
