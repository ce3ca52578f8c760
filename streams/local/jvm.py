"""How the stack's Java processes are started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from streams.local.java import Java

_LOGGING = Path(__file__).with_name("log4j2.properties")


def java_command(
    java: Java,
    class_path: Iterable[Path],
    main: str,
    *arguments: str,
    heap_mb: int,
    brief: bool = False,
) -> tuple[str, ...]:
    """Return the command line of a Java program with a bounded heap and a quick start.

    The collector is the serial one: with heaps this small on a laptop's few cores it starts
    faster and takes less memory than G1, and its pauses are short. A `brief` program ends
    before the optimizing compiler would pay; the servers keep it for their throughput.
    """
    return (
        str(java.program),
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        *(("-XX:TieredStopAtLevel=1",) if brief else ()),
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={_LOGGING}",
        "-cp",
        ":".join(f"{folder}/*" for folder in class_path),
        main,
        *arguments,
    )


def properties(values: Mapping[str, object]) -> bytes:
    """Write a Java properties file; backslashes are the only thing to escape in ours."""
    lines = (
        f"{name}={str(value).replace(chr(92), chr(92) * 2)}\n" for name, value in values.items()
    )
    return "".join(lines).encode()
