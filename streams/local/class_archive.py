"""Archives of loaded classes (AppCDS), which halve the start of the stack's Java servers.

A server's first run writes its archive when it exits; later runs map it. The archive is cached
beside the jars, per Java runtime, because both determine its content.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streams.local.java import Java

_QUIET = "-Xlog:cds=error,cds+dynamic=error,class+path=error"
_VERIFY_SECONDS = 30


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one server: `cached` once it exists, else written to `fresh`."""

    java: Java
    class_path: str
    cached: Path
    fresh: Path

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the Java launcher that use the archive, or write it at exit."""
        if self.cached.exists():
            return f"-XX:SharedArchiveFile={self.cached}", _QUIET
        return f"-XX:ArchiveClassesAtExit={self.fresh}", _QUIET

    def adopt(self) -> None:
        """Cache the archive that the server wrote, if it is valid; call it once the server ended.

        A server that was killed leaves none, or a part of one, which is deleted.
        """
        if not self.fresh.exists():
            return
        with suppress(OSError, subprocess.TimeoutExpired):
            if not self.cached.exists() and self._is_valid():
                self.cached.parent.mkdir(parents=True, exist_ok=True)
                number, copy = tempfile.mkstemp(dir=self.cached.parent, prefix=".fresh-")
                os.close(number)
                shutil.copyfile(self.fresh, copy)
                Path(copy).replace(self.cached)
        self.fresh.unlink(missing_ok=True)

    def _is_valid(self) -> bool:
        verify = ("-Xshare:on", "-XX:+VerifySharedSpaces", f"-XX:SharedArchiveFile={self.fresh}")
        done = subprocess.run(
            (str(self.java.program), *verify, _QUIET, "-cp", self.class_path, "-version"),
            check=False,
            capture_output=True,
            timeout=_VERIFY_SECONDS,
        )
        return done.returncode == 0


def class_archive(java: Java, lib: Path, main: str, fresh: Path) -> ClassArchive:
    """Return the archive of the program `main` on the jars in `lib`."""
    program = java.program.resolve()
    runtime = f"{program} {java.release} {program.stat().st_mtime_ns}"
    name = f"{main}-{hashlib.sha256(runtime.encode()).hexdigest()[:16]}.jsa"
    return ClassArchive(java, f"{lib}/*", lib.parent / "class-archives" / name, fresh)
