"""Released upcasters never change: the lock file has a digest of each one's code."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest

from streams.events.code_digest import code_digest
from streams.events.upcast import UPCASTERS
from streams.events.upcaster import Body
from streams.events.upcaster_lock import ChangedUpcaster, locked, problems, with_new

_MADE = count()
WRITTEN = """
from dataclasses import replace
FIRST = {"a": 1}
def second(value):
    return value + 1
def change(body):
    return replace(body, meta={"n": second(FIRST["a"])})
"""


@pytest.fixture
def digest_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return the digest of the function `change` of a module with a given text."""
    monkeypatch.syspath_prepend(tmp_path)

    def digest(text: str) -> str:
        name = f"written_{next(_MADE)}"
        (tmp_path / f"{name}.py").write_text(text)
        return code_digest(import_module(name).change)

    return digest


def test_released_upcasters_are_unchanged_and_new_ones_are_locked() -> None:
    assert not list(problems(locked(), UPCASTERS.versions()))
    new = UPCASTERS.versions().keys() - locked().keys()
    assert not new, f"released by this change: {sorted(new)}; run `streams events lock`"


def test_an_upcaster_with_another_body_is_named_with_what_to_do() -> None:
    (found,) = problems({"noetl.tea.made 1 to 2": "ab"}, {"noetl.tea.made 1 to 2": "cd"})
    assert found.startswith("noetl.tea.made 1 to 2: its code is not the released one")
    assert "by another version of the event type" in found


def test_a_changed_or_missing_upcaster_is_never_locked_again() -> None:
    assert with_new({"a 1 to 2": "ab"}, {"a 1 to 2": "ab", "a 2 to 3": "cd"}) == {
        "a 1 to 2": "ab",
        "a 2 to 3": "cd",
    }
    for digests in ({"a 1 to 2": "xx"}, {}):
        with pytest.raises(ChangedUpcaster, match="a 1 to 2"):
            with_new({"a 1 to 2": "ab"}, digests)


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN.replace("def change(body):", 'def change(body: object) -> "Body":\n    """Doc."""'),
        WRITTEN.replace("return value + 1", "return (\n        value  # a comment\n        + 1)"),
        WRITTEN + "UNUSED = 2\n",
    ],
    ids=["docstring and annotations", "comment and layout", "unrelated code"],
)
def test_what_does_not_change_the_result_does_not_change_the_digest(
    text: str, digest_of: Callable[[str], str]
) -> None:
    assert digest_of(text) == digest_of(WRITTEN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"n": second', '{"m": second'),
        ("value + 1", "value + 2"),
        ('"a": 1', '"a": 2'),
        ("from dataclasses import replace", "from functools import reduce as replace"),
    ],
    ids=["body", "a function it calls", "a constant it reads", "an import"],
)
def test_what_may_change_the_result_changes_the_digest(
    old: str, new: str, digest_of: Callable[[str], str]
) -> None:
    assert digest_of(WRITTEN.replace(old, new)) != digest_of(WRITTEN)


def test_code_that_depends_on_where_it_was_made_has_no_digest() -> None:
    def nested(body: Body) -> Body:
        return body

    for one in (nested, lambda body: body):
        with pytest.raises(ValueError, match="must be a function of a module"):
            code_digest(one)
