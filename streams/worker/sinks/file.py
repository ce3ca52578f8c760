"""Files below the deployment's sink folder."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from streams.events.model import Json
from streams.worker.sinks.format import encoded, lines, numbered, parts, span, surplus
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused
from streams.worker.sinks.sink_folder import below


class FileDriver:
    """Replaces a file atomically; `append` adds lines to it.

    The next attempt removes the temporary file of a killed one, and ends an unfinished line.

    `spec.path` is relative to the setting `sinks.folder`; by default the file is named after
    the execution, the step and the write.
    """

    def __init__(self, around: SinkEnvironment) -> None:
        self._folder = around.folder
        self._appending = asyncio.Lock()

    async def write(self, job: SinkJob) -> SinkReference:
        """Write the value to a file, a list with `chunk_size` to several."""
        name = str(job.spec.get("path") or f"{job.name}.{job.format}")
        place = below(self._folder, name)
        try:
            if job.mode == "append":
                async with self._appending:
                    await asyncio.to_thread(_append, place, job)
                return {"store": "file", "key": name, "range": "appended"}
            made = parts(job)
            await asyncio.to_thread(_replace, self._folder, name, job, made)
        except OSError as error:
            raise SinkRefused("os", f"{name}: {error.strerror or error}") from error
        return {"store": "file", "key": name, "range": span(made)}

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _replace(
    folder: Path | None, name: str, job: SinkJob, made: Sequence[tuple[int | None, Json]]
) -> None:
    for number, data in made:
        place = below(folder, numbered(name, number))
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(place, job, job.call.attempt)
        for earlier in range(1, job.call.attempt):
            _temporary(place, job, earlier).unlink(missing_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(encoded(data, job.format))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
    if (first := surplus(job, made)) is not None:
        end = first
        while below(folder, numbered(name, end)).exists():
            end += 1
        for number in reversed(range(first, end)):  # in reverse: the search for them stops at a gap
            below(folder, numbered(name, number)).unlink(missing_ok=True)


def _temporary(place: Path, job: SinkJob, attempt: int) -> Path:
    """Return the temporary file of an attempt."""
    name = sha256(job.name.encode()).hexdigest()[:16]
    return place.with_name(f".{place.name}.{name}.{attempt}")


def _append(place: Path, job: SinkJob) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        added = lines(job.data, job.format, file)
        if added and file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(added)
        file.flush()
        os.fsync(file.fileno())
