"""The catalogue's writers: who constructs an event, itself or by a shared constructor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from streams.events.catalogue import catalogue
from streams.events.generate import TYPES_FILE, class_name

PACKAGE = TYPES_FILE.parents[1]
ROLES = ("api", "cli", "collector", "planner", "trigger", "worker")
SHARED = ("execution", "results")
Owner = tuple[str, str | None]
"""A function that constructs an event, and its class if it is a method."""
WRITTEN = sorted(name for name, kind in catalogue().types.items() if not kind.planned)


@cache
def trees(package: str) -> list[ast.Module]:
    files = sorted((PACKAGE / package).rglob("*.py"))
    return [ast.parse(path.read_text("utf-8")) for path in files]


@cache
def called(tree: ast.AST) -> frozenset[str]:
    """Return the names of everything that a tree calls."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return frozenset(
        func.id if isinstance(func, ast.Name) else func.attr
        for func in calls
        if isinstance(func, ast.Name | ast.Attribute)
    )


@cache
def imported(tree: ast.AST) -> frozenset[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return frozenset(alias.name for node in nodes for alias in node.names)


def owners(tree: ast.AST, name: str, around: str | None = None) -> Iterator[Owner]:
    """Yield every function of a module that calls `name`, and those that call these."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from owners(node, name, node.name)
        elif isinstance(node, ast.FunctionDef) and name in called(node):
            yield node.name, around
            if around is None:
                yield from owners(tree, node.name)


def constructors(type_name: str) -> set[Owner]:
    modules = (tree for package in SHARED for tree in trees(package))
    return {owner for tree in modules for owner in owners(tree, class_name(type_name))}


def uses(tree: ast.AST, owner: Owner) -> bool:
    function, around = owner
    if function not in called(tree):
        return False
    return bool(imported(tree) & ({function} if around is None else {around, "AttemptEvent"}))


def writers(type_name: str) -> set[str]:
    shared = constructors(type_name)
    return {
        role
        for role in ROLES
        for tree in trees(role)
        if class_name(type_name) in called(tree) or any(uses(tree, one) for one in shared)
    }


@pytest.mark.parametrize("name", [name for name in WRITTEN if writers(name)])
def test_the_catalogue_names_exactly_the_writers(name: str) -> None:
    # An operator's `payloads expire` calls the collector, which constructs the event.
    indirect = {"cli"} if name == "result.expired" else set()
    assert set(catalogue().types[name].writers) == writers(name) | indirect


def test_only_catalog_credentials_and_forks_hide_their_constructors_behind_a_port() -> None:
    hidden = {name for name in WRITTEN if not writers(name)}
    steering = {f"subscription.{word}" for word in ("paused", "resumed", "replayed")}
    credentials = {"credential.removed", "credential.stored"}
    assert hidden == {"catalog.registered", "execution.forked"} | credentials | steering


def test_a_method_of_a_shared_class_is_used_by_whoever_imports_the_class() -> None:
    text = "from x import CommandAttempt\nCommandAttempt().failed()"
    assert uses(ast.parse(text), ("failed", "CommandAttempt"))
    assert not uses(ast.parse(text), ("failed", "FrameAttempt"))
