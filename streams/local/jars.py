"""The jars of Kafka and Debezium, cached per user and shared by all stacks.

A profile's folder is named by the digest of its content and renamed into place when complete,
so that concurrent processes never see a partial one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO

from streams.local.disk_space import check_room, within
from streams.local.errors import JarsUnavailable
from streams.local.fetch import Fetcher, FetchError, choose_fetcher
from streams.local.pom import POM, Coordinate, read_coordinates
from streams.local.unpack import unpack

# Increment when the layout of the cached files changes.
_CACHE_VERSION = 2
_NEEDED_BYTES = 600 * 2**20
_LOCK_POLL_SECONDS = 0.1
_ARCHIVE = "tar.gz"
# Plugins without a ServiceLoader manifest: artifact, service, and implementing classes. A scan
# of all classes would find them, too, but triple Connect's startup time.
_SERVICES = {
    "apicurio-registry-utils-converter": (
        "org.apache.kafka.connect.storage.Converter",
        (
            "io.apicurio.registry.utils.converter.AvroConverter",
            "io.apicurio.registry.utils.converter.ExtJsonConverter",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Jars:
    """One profile's files: plain jars in `lib`, a folder per archive in `unpacked`."""

    folder: Path
    coordinates: tuple[Coordinate, ...]

    @property
    def lib(self) -> Path:
        return self.folder / "lib"

    def unpacked(self, artifact: str) -> Path:
        return self.folder / "unpacked" / artifact

    def version(self, artifact: str) -> str:
        return next(found.version for found in self.coordinates if found.artifact == artifact)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the user's cache folder for this project; STREAMS_CACHE overrides it."""
    if chosen := environment.get("STREAMS_CACHE"):
        return Path(chosen).expanduser().resolve()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "noetl-streams"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noetl-streams"


def provide_jars(
    profile: str,
    *,
    cache: Path,
    say: Callable[[str], None],
    fetcher: Fetcher | None = None,
    pom: Path = POM,
    stop: Event | None = None,
) -> Jars:
    """Return the jars of a pom's profile, fetching them if they are not cached.

    Fetching, or waiting for another process that fetches, may take minutes; `stop` aborts it.

    Raises:
        JarsUnavailable: they are not cached and could not be fetched.
        DiskFull: the disk of the cache is full.
    """
    coordinates = tuple(read_coordinates(pom.read_text(), profile))
    folder = cache / f"{profile}-{_digest(coordinates)}"
    stop = stop or Event()
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{folder.name}.lock").open("w") as lock:
            if not _wait_for_lock(lock, stop):
                raise JarsUnavailable(folder, "another process", "this process was stopped")
            if not folder.exists():
                with within(cache, _NEEDED_BYTES):
                    chosen = fetcher or choose_fetcher(pom, stop)
                    _fetch_into(folder, profile, coordinates, say, chosen)
    return Jars(folder, coordinates)


def _wait_for_lock(lock: IO[str], stop: Event) -> bool:
    """Wait for the lock; return False if `stop` is set first."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if stop.wait(_LOCK_POLL_SECONDS):
                return False


def _digest(coordinates: Sequence[Coordinate]) -> str:
    named = "\n".join(sorted(str(coordinate) for coordinate in coordinates))
    return hashlib.sha256(f"{_CACHE_VERSION}\n{named}".encode()).hexdigest()[:16]


def _fetch_into(
    folder: Path,
    profile: str,
    coordinates: Sequence[Coordinate],
    say: Callable[[str], None],
    fetcher: Fetcher,
) -> None:
    check_room(folder.parent, _NEEDED_BYTES)
    say(f"fetching {len(coordinates)} files from Maven Central with {fetcher.name}, once per user")
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        fetched, arranged = Path(scratch, "fetched"), Path(scratch, "arranged")
        fetched.mkdir()
        try:
            fetcher.fetch(profile, coordinates, fetched)
        except FetchError as error:
            raise JarsUnavailable(folder, fetcher.name, str(error)) from error
        missing = [c.file_name for c in coordinates if not (fetched / c.file_name).is_file()]
        if missing:
            raise JarsUnavailable(folder, fetcher.name, f"{', '.join(missing)} missing")
        arrange(coordinates, fetched, arranged)
        # The folder may have been copied here by hand in the meantime.
        with suppress(FileExistsError):
            arranged.rename(folder)


def arrange(coordinates: Sequence[Coordinate], fetched: Path, arranged: Path) -> None:
    """Move plain jars to `lib` and unpack each archive into its own folder."""
    (arranged / "lib").mkdir(parents=True)
    for coordinate in coordinates:
        source = fetched / coordinate.file_name
        if coordinate.type == _ARCHIVE:
            target = arranged / "unpacked" / coordinate.artifact
            unpack(source, target)
        else:
            source.rename(arranged / "lib" / coordinate.file_name)
        if coordinate.artifact in _SERVICES:
            service, classes = _SERVICES[coordinate.artifact]
            listing = arranged / "lib" / f"{coordinate.artifact}-services.jar"
            with zipfile.ZipFile(listing, "w") as jar:
                jar.writestr(f"META-INF/services/{service}", "\n".join(classes) + "\n")
