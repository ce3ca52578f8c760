"""Why nothing was collected.

Refused
├── CollectorBusy    another collector is at work
├── GraceTooShort    writers believe longer than this that a payload is there
└── BucketOfAnother  the objects belong to another log
"""

from __future__ import annotations

from datetime import timedelta

from streams.errors import Refused


class CollectorBusy(Refused):
    """Another collector of this log is at work."""

    def __init__(self) -> None:
        super().__init__("another collector of this log is at work; let it end, then try again")


class GraceTooShort(Refused):
    """A grace in which a writer could still rely on an object."""

    def __init__(self, grace: timedelta, least: timedelta) -> None:
        super().__init__(
            f"a grace of {grace.total_seconds():g} s is too short: writers take what they stored "
            f"for granted for {least.total_seconds():g} s; use that or more"
        )


class BucketOfAnother(Refused):
    """The objects lie in a bucket that another log's collector has marked as its own."""

    def __init__(self, found: str, ours: str, key: str) -> None:
        super().__init__(
            f"the payload store belongs to log {found}, and this is log {ours}: what this log does "
            "not know would be deleted; give each deployment a bucket of its own, or remove the "
            f"object {key} if the other log is gone"
        )
