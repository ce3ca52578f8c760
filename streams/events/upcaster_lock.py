"""The lock file of released upcasters: the digest of each one's code, by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

import orjson

from streams.errors import Refused

LOCK_FILE = Path(__file__).with_name("upcasters.lock.json")


class ChangedUpcaster(Refused):
    """A released upcaster has another body, or is gone."""


def locked() -> dict[str, str]:
    """Return the digests in the lock file."""
    text = files("streams.events").joinpath(LOCK_FILE.name).read_bytes()
    found: dict[str, str] = orjson.loads(text)
    return found


def problems(lock: Mapping[str, str], digests: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with upcasters, given the released ones."""
    for name, digest in lock.items():
        if name not in digests:
            yield f"{name}: it is released but missing; events of its version are still in logs"
        elif digests[name] != digest:
            yield (
                f"{name}: its code is not the released one; restore it, and correct its result "
                "by another version of the event type with its own upcaster (docs/schemas.md)"
            )


def with_new(lock: Mapping[str, str], digests: Mapping[str, str]) -> dict[str, str]:
    """Return the lock with the upcasters that it lacks.

    Raises:
        ChangedUpcaster: a released one is changed or missing.
    """
    if found := list(problems(lock, digests)):
        raise ChangedUpcaster("; ".join(found))
    return {**lock, **digests}


def text_of(lock: Mapping[str, str]) -> str:
    """Return the text of the lock file."""
    option = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(lock, option=option).decode()
