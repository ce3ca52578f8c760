"""Command lines and property files of the stack's Java processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from streams.local.class_archive import ClassArchive
from streams.local.java import Java

_LOGGING = Path(__file__).with_name("log4j2.properties")
# Java encodes file names by the locale; the C locale has ASCII only.
JAVA_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
JAVA_STOP_SECONDS = 30.0
"""The first run of a server writes its class archive when it stops."""


def java_command(
    java: Java,
    class_path: Iterable[Path],
    main: str,
    *arguments: str,
    heap_mb: int,
    brief: bool = False,
    archive: ClassArchive | None = None,
) -> tuple[str, ...]:
    """Return the command line of a Java program with a bounded heap and a fast startup.

    With small heaps and few cores the serial collector starts faster and uses less memory than
    G1, with short pauses. A `brief` program exits before the optimizing compiler pays off.
    """
    return (
        str(java.program),
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        *(("-XX:TieredStopAtLevel=1",) if brief else ()),
        *(archive.options if archive is not None else ()),
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={_LOGGING}",
        "-cp",
        ":".join(f"{folder}/*" for folder in class_path),
        main,
        *arguments,
    )


def properties(values: Mapping[str, object]) -> bytes:
    """Serialize a Java properties file: ISO 8859-1, non-ASCII escaped."""
    return "".join(f"{name}={_escaped(str(value))}\n" for name, value in values.items()).encode()


def _escaped(value: str) -> str:
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)
