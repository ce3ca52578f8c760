"""Writes the golden corpus: `python -m tests.golden.record`.

The same program always writes the same bytes: ids, times and contents are fixed. Run it again after
a new schema version of an event type, or a declared change of the fold, and commit the difference.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.golden.built import BUILT, built
from tests.golden.corpus import (
    FOLDER,
    MANIFEST,
    PAYLOADS,
    Line,
    Log,
    documented,
    expected_lines,
    log_lines,
    manifest,
    packed,
)
from tests.golden.fold import expected_of
from tests.golden.payloads import Payloads
from tests.golden.sealing import Unsealed, sealed_log
from tests.golden.sources import every_type, history
from tests.histories.replay import NAMES

_WRITTEN = ("logs", "expected", "payloads")


class Recording(NamedTuple):
    """A whole corpus in memory."""

    logs: list[Log]
    expected: dict[str, list[Line]]
    payloads: Payloads


def recording() -> Recording:
    """Return the corpus as this program makes it."""
    payloads = Payloads()
    logs = list(_logs(payloads))
    return Recording(logs, {log.name: list(expected_of(log)) for log in logs}, payloads)


def _logs(payloads: Payloads) -> Iterator[Log]:
    for name in NAMES:
        yield _log(name, list(history(name)), payloads)
    for name in BUILT:
        yield _log(name, list(built(name)), payloads)
    yield _log("every_type", list(every_type()), payloads, is_folded=False)


def _log(name: str, events: list[Unsealed], payloads: Payloads, *, is_folded: bool = True) -> Log:
    records = payloads.replaced(one.record for one in events)
    changed = [one._replace(record=new) for one, new in zip(events, records, strict=True)]
    return Log(name, is_folded, sealed_log(changed))


def files_of(made: Recording) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a corpus by their paths; those of lines are not packed yet."""
    yield MANIFEST, manifest(made.logs)
    yield PAYLOADS, documented(made.payloads.described)
    for log in made.logs:
        yield f"logs/{log.name}.jsonl", log_lines(log)
        yield f"expected/{log.name}.jsonl", expected_lines(made.expected[log.name])
    for key, data in made.payloads.objects.items():
        yield f"payloads/{key}", data


def write(made: Recording, folder: Path) -> None:
    """Write a corpus; files of an earlier one are removed."""
    for part in _WRITTEN:
        shutil.rmtree(folder / part, ignore_errors=True)
    for path, data in files_of(made):
        is_lines = path.endswith(".jsonl")
        target = folder / (f"{path}.gz" if is_lines else path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(packed(data) if is_lines else data)


if __name__ == "__main__":
    write(recording(), FOLDER)
