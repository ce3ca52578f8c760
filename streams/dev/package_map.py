"""The package map of docs/architecture.md, generated from the import contract.

`python -m streams.dev.package_map` rewrites the part of the page between its two markers.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

BEGIN, END = "<!-- package map: begin -->", "<!-- package map: end -->"
Layer = tuple[str, ...]


def layers(pyproject: str) -> tuple[Layer, ...]:
    """Return the layers of the import contract, highest first."""
    contracts = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    (declared,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return tuple(tuple(name.strip() for name in layer.split("|")) for layer in declared)


def describe(name: str) -> str:
    """Return the first line of the docstring of a package or module of `streams`."""
    folder = files("streams")
    package = folder.joinpath(name, "__init__.py")
    source = package if package.is_file() else folder.joinpath(f"{name}.py")
    docstring = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]


def render(found: Sequence[Layer]) -> str:
    """Return the map: a Mermaid picture of the layers, and a table of the packages."""
    return "\n".join([BEGIN, "", *_picture(found), "", *_table(found), "", END])


def insert(page: str, package_map: str) -> str:
    """Return `page` with its map replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{package_map}{after}"


def _picture(found: Sequence[Layer]) -> Iterator[str]:
    yield "```mermaid"
    yield "flowchart TB"
    for number, layer in enumerate(found):
        yield f"  subgraph layer{number}[ ]"
        yield "    direction LR"
        yield from (f'    {name}["{name}"]' for name in layer)
        yield "  end"
    yield from (f"  layer{upper} --> layer{lower}" for upper, lower in pairwise(range(len(found))))
    yield "```"


def _table(found: Sequence[Layer]) -> Iterator[str]:
    yield "| layer | package | contents |"
    yield "|---|---|---|"
    for number, layer in enumerate(found, 1):
        yield from (f"| {number} | `{name}` | {describe(name)} |" for name in layer)


def main() -> None:
    """Rewrite the map in docs/architecture.md of this checkout."""
    root = Path(__file__).resolve().parents[2]
    page = root / "docs" / "architecture.md"
    found = layers((root / "pyproject.toml").read_text("utf-8"))
    page.write_text(insert(page.read_text("utf-8"), render(found)), "utf-8")


if __name__ == "__main__":
    main()
