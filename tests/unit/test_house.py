"""The rules of the house that can be counted: ceilings that only ever get lower."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "streams"
GENERATED = PACKAGE / "events" / "types.py"
ANY_PER_THOUSAND_LINES = 3.0
Module = tuple[str, str, ast.Module]


@lru_cache(maxsize=1)
def modules() -> tuple[Module, ...]:
    """Return each module that people write: its path, text and tree."""
    paths = (path for path in sorted(PACKAGE.rglob("*.py")) if path != GENERATED)
    texts = ((path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8")) for path in paths)
    return tuple((path, text, ast.parse(text)) for path, text in texts)


@lru_cache(maxsize=1)
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    return tuple((path, node) for path, _, tree in modules() for node in ast.walk(tree))


def uses_of_any() -> list[str]:
    return [path for path, node in nodes() if isinstance(node, ast.Name) and node.id == "Any"]


def names_of_two_classes() -> list[str]:
    classes = (node.name for _, node in nodes() if isinstance(node, ast.ClassDef))
    named = Counter(name for name in classes if not name.startswith("_"))
    return [f"{name} ({count})" for name, count in named.items() if count > 1]


def functions_longer_than(most: int) -> list[str]:
    return [
        f"{path} {node.name}: {length} lines"
        for path, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > most
    ]


def files_longer_than(most: int) -> list[str]:
    lengths = {path: text.count("\n") for path, text, _ in modules()}
    return [f"{path}: {length} lines" for path, length in lengths.items() if length > most]


def names_told() -> list[str]:
    def name(node: ast.AST) -> str | None:
        match node:
            case ast.Name(id=found) | ast.arg(arg=found) | ast.Attribute(attr=found):
                return found
            case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found):
                return found
            case ast.keyword(arg=found) | ast.ClassDef(name=found):
                return found
        return None

    trees = [(path, tree) for path, _, tree in modules()]
    for folder in ("tests", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            trees.append((str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))))
    every = ((path, node) for path, tree in trees for node in ast.walk(tree))
    return [path for path, node in every if (name(node) or "").lower() == "told"]


CEILINGS: dict[str, tuple[Callable[[], list[str]], int]] = {
    "class names used twice": (names_of_two_classes, 0),
    "functions over 60 lines": (lambda: functions_longer_than(60), 0),
    "functions over 40 lines": (lambda: functions_longer_than(40), 13),
    "files over 400 lines": (lambda: files_longer_than(400), 0),
    "files over 250 lines": (lambda: files_longer_than(250), 18),
    "uses of the name `told`": (names_told, 0),
}


@pytest.mark.parametrize("rule", CEILINGS)
def test_a_count_is_not_above_its_ceiling(rule: str) -> None:
    count, ceiling = CEILINGS[rule]
    found = count()
    assert len(found) <= ceiling, f"{len(found)} {rule}, at most {ceiling}: {Counter(found)}"


def test_any_is_rare() -> None:
    lines = sum(text.count("\n") for _, text, _ in modules())
    per_thousand = 1000 * len(uses_of_any()) / lines
    assert per_thousand <= ANY_PER_THOUSAND_LINES


def test_no_two_test_files_have_one_name() -> None:
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == [], (
        "pytest imports them by name: the second one is an error of the whole run"
    )
