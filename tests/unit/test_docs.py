"""What the documents point at is there."""

import re
from pathlib import Path

import pytest

from streams.cli.bench import bench

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [REPOSITORY / "README.md", REPOSITORY / "bench/README.md", *REPOSITORY.glob("docs/**/*.md")]
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_decision_is_in_the_index_by_its_number() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    page = (folder / "README.md").read_text()
    listed = re.findall(r"^\| \[(\d+)\]\((\d{4}-\S+\.md)\) ", page, re.MULTILINE)

    assert [name for _, name in listed] == sorted(path.name for path in folder.glob("0*.md"))
    assert all(int(name[:4]) == int(number) for number, name in listed)


def test_every_bench_is_in_its_list() -> None:
    page = (REPOSITORY / "bench" / "README.md").read_text()

    assert set(re.findall(r"^\| `(\w+)` ", page, re.MULTILINE)) == set(bench.commands)
