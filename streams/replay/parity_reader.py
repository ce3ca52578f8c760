"""The Rust reader on the golden corpus: the same checksums as Python recorded."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from streams.replay.checks import Check, Status, failed, passed

TIMEOUT_S = 300.0
_BUILT = (".venv/cargo-reader/release/reader", "crates/reader/target/release/reader")


@dataclass(frozen=True, slots=True)
class GoldenCorpus:
    """Where the reader and the corpus of a checkout are."""

    reader: Path
    corpus: Path


def find_corpus(repository: Path, reader: Path | None = None) -> GoldenCorpus | str:
    """Return the reader (the one given, else a built one) and the corpus, or what is missing."""
    candidates = [repository / one for one in _BUILT] if reader is None else [reader]
    found = next((one for one in candidates if os.access(one, os.X_OK) and one.is_file()), None)
    if found is None:
        return "no reader"
    corpus = repository / "tests" / "golden"
    if not (corpus / "manifest.json").is_file():
        return "no golden corpus"
    return GoldenCorpus(found, corpus)


async def reader_check(name: str, found: GoldenCorpus | str) -> Check:
    """Compare the corpus; a reader that cannot run has not passed."""
    if isinstance(found, str):
        return Check(name, Status.NOT_RUN, f"not run: {found}")
    try:
        process = await asyncio.create_subprocess_exec(
            found.reader,
            "check",
            found.corpus,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return Check(name, Status.NOT_RUN, f"not run: {found.reader}: {error.strerror}")
    try:
        output, errors = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return failed(name, f"the reader did not end within {TIMEOUT_S:.0f} s")
    if process.returncode != 0:
        return failed(name, "the reader finds other checksums", errors.decode().strip())
    try:
        report = orjson.loads(output)
        if report["identical"] is not True:
            return failed(name, "the reader finds other checksums", output.decode().strip())
        return passed(name, f"{report['events']} events of the golden corpus, Rust equals Python")
    except (ValueError, KeyError, TypeError):
        return failed(name, "the reader's answer cannot be read", output.decode()[:200])
