"""The package map in the docs is the one that the import contract declares."""

from __future__ import annotations

from pathlib import Path

from streams.dev.package_map import describe, insert, layers, render

REPOSITORY = Path(__file__).resolve().parents[3]
PYPROJECT = (REPOSITORY / "pyproject.toml").read_text("utf-8")


def test_the_map_in_the_docs_is_up_to_date() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")

    assert insert(page, render(layers(PYPROJECT))) == page, (
        "docs/architecture.md is stale: run python -m streams.dev.package_map"
    )


def test_every_package_is_described_in_its_docstring() -> None:
    names = [name for layer in layers(PYPROJECT) for name in layer]

    assert [name for name in names if not describe(name)] == []


def test_every_package_is_in_one_layer() -> None:
    names = [name for layer in layers(PYPROJECT) for name in layer]
    found = [
        path.stem
        for path in (REPOSITORY / "streams").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    ]

    assert sorted(names) == sorted(name for name in found if name != "__init__")
