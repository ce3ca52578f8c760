"""What the documents point at is there."""

import re
from pathlib import Path

import pytest

from streams.cli.bench import bench

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*REPOSITORY.glob("*.md"), REPOSITORY / "bench/README.md", *REPOSITORY.glob("docs/**/*.md")]
)
FILE = re.compile(r"`((?:streams|tests|crates|connectors|topics)/[\w./-]+)`")
INVENTED = {  # the worked examples of CONTRIBUTING.md
    "streams/census/",
    "streams/log/migrations/0020_stage_paused.up.sql",
    "streams/roles/census.py",
    "streams/worker/sinks/webhook.py",
    "streams/worker/tools/sleep.py",
    "tests/integration/sinks/test_sink_webhook.py",
    "tests/unit/census/test_census_core.py",
    "tests/unit/worker/test_tool_sleep.py",
}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_file_of_the_code_that_a_page_names_exists(page: Path) -> None:
    named = set(FILE.findall(page.read_text("utf-8"))) - INVENTED

    assert sorted(name for name in named if not (REPOSITORY / name).exists()) == []


def test_every_decision_is_in_the_index_by_its_number() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    page = (folder / "README.md").read_text()
    listed = re.findall(r"^\| \[(\d+)\]\((\d{4}-\S+\.md)\) ", page, re.MULTILINE)

    assert [name for _, name in listed] == sorted(path.name for path in folder.glob("0*.md"))
    assert all(int(name[:4]) == int(number) for number, name in listed)


def test_every_bench_is_in_its_list() -> None:
    page = (REPOSITORY / "bench" / "README.md").read_text()

    assert set(re.findall(r"^\| `(\w+)` ", page, re.MULTILINE)) == set(bench.commands)


def test_every_message_that_the_runbook_quotes_is_in_the_code() -> None:
    page = (REPOSITORY / "docs" / "runbook.md").read_text("utf-8")
    code = "\n".join(path.read_text("utf-8") for path in REPOSITORY.glob("streams/**/*.py"))
    tables = re.findall(r"^\| message[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)", page, re.MULTILINE)
    cells = [row.split(" | ")[0] for table in tables for row in table.splitlines()]
    messages = [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    parts = [part for one in messages for part in re.split(r"\W*…\W*|\d+|%\w", one) if part]

    assert len(messages) > 10
    assert [part for part in parts if part.strip() not in code] == []
