"""The examples in the documents are playbooks without a problem."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streams.playbook.parse import check
from streams.playbook.sandbox import TIME_LIMIT_S
from streams.playbook.sandbox_limits import MAX_ITEMS, MAX_TEXT

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "playbooks.md").read_text("utf-8")
RESULTS = (DOCS / "results.md").read_text("utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE + RESULTS, re.S)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split("path: ")[1].split()[0])
def test_an_example_of_the_page_has_no_problem(text: str) -> None:
    made, problems = check(text)
    assert problems == ()
    assert made is not None


def test_the_page_has_examples_and_says_the_limits_that_are() -> None:
    assert len(EXAMPLES) >= 5
    said = f"{TIME_LIMIT_S:g} seconds, {MAX_TEXT >> 20} Mi characters of text made, {MAX_ITEMS:,}"
    assert said in PAGE
