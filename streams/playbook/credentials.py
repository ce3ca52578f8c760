"""Credentials a step may use: those it names, and those the playbook declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams.playbook.model import Playbook, Step
from streams.playbook.spelling import Spelling
from streams.playbook.template import Template, fixed_part


def stored_name(playbook: Playbook, name: str) -> str:
    """Return the stored name of a credential, resolving the playbook's alias."""
    return playbook.credentials.get(name, name)


def may_use_credential(playbook: Playbook, step: str, name: str) -> bool:
    """Return whether a task of the step uses this credential, by its stored name.

    If the name is a template, any declared credential may be used; in NoETL's spelling, which
    declares none, any of the organization's.
    """
    found = playbook.steps.get(step)
    if found is None:
        return False
    if "keychain" in found.reads and _is_in_keychain(playbook, name):
        return True
    for named in _named(found):
        if named is None and playbook.spelling is Spelling.NOETL:
            return True
        if named is None and name in playbook.credentials.values():
            return True
        if named is not None and stored_name(playbook, named) == name:
            return True
    return False


def credential_name(auth: object) -> str | None:
    """Return the name in a task's `auth`: a text, or {type, credential}."""
    if isinstance(auth, Mapping):
        auth = auth.get("credential") or auth.get("name")
    return auth if isinstance(auth, str) else None


def _is_in_keychain(playbook: Playbook, name: str) -> bool:
    """Return whether the playbook's keychain names this credential, or its provider."""
    for entry in playbook.keychain:
        keys = ("auth", "credential")
        named = [credential_name(fixed_part(entry.config, key)[1]) for key in keys]
        if name in named or (entry.kind == "credential" and name == entry.name):
            return True
        provider = fixed_part(entry.config, "provider")[1]
        if entry.kind == "secrets" and name.startswith(f"{provider}:"):
            return True
    return False


def _named(step: Step) -> Iterator[str | None]:
    """Yield the credentials of the step's tasks and cursor; None: it is a template."""
    configs: list[Template] = [
        task.config if task.sink is None else task.sink.address for task in step.tasks
    ]
    if step.loop is not None and step.loop.cursor is not None:
        configs.append(step.loop.cursor.config)
    for config in configs:
        is_fixed, auth = fixed_part(config, "auth")
        if not is_fixed:
            yield None
        elif (name := credential_name(auth)) is not None:
            yield name
