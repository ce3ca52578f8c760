"""Errors of retention.

Refused
├── NoSuchPolicy      the tenant has no policy
├── NoSuchArchive     there is no archive with this number
└── NotArchivable     an execution cannot be archived as it is
Inconsistent
└── DamagedArchive    an object of an archive is missing, or is not what was written
Unavailable
├── RetentionBusy     another run is archiving
└── RetentionLate     the log is in use, or the mirror has not caught up
"""

from __future__ import annotations

from streams.errors import Inconsistent, Refused, Unavailable


class NoSuchPolicy(Refused):
    """The tenant has no policy."""

    def __init__(self, tenant_id: str) -> None:
        super().__init__(
            f"tenant {tenant_id!r} has no retention policy; `streams retention policy list` "
            "lists those that have one"
        )


class NoSuchArchive(Refused):
    """There is no archive with this number."""

    def __init__(self, archive_id: int) -> None:
        super().__init__(
            f"archive {archive_id} does not exist; `streams retention list` lists them"
        )


class NotArchivable(Refused):
    """An execution cannot be archived as it is; nothing of its partition was."""


class DamagedArchive(Inconsistent):
    """An object of an archive is missing, or is not what was written."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(
            f"archive object {uri}: {why}; restore the object from a backup of the bucket"
        )
        self.uri, self.why = uri, why


class RetentionBusy(Unavailable):
    """Another run is archiving."""

    def __init__(self) -> None:
        super().__init__("another `streams retention` is running on this log; wait for its end")


class RetentionLate(Unavailable):
    """The log is in use, or the mirror has not caught up; running again is safe."""
