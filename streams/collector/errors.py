"""Why nothing was collected.

Refused
├── CollectorBusy    another collector is at work
├── LockLost         another one may have begun meanwhile
├── GraceTooShort    writers believe longer than this that a payload is there
├── BucketOfAnother  the objects belong to another log
├── BucketOfNobody   no log has marked the objects, and this one names none of them
├── EndedAlready     the result has expired before
├── NothingToEnd     the execution holds nothing that could be ended, or is not there
└── StillNeeded      an execution that runs may read it
"""

from __future__ import annotations

from datetime import datetime, timedelta

from streams.errors import Refused


class CollectorBusy(Refused):
    """Another collector of this log is at work."""

    def __init__(self) -> None:
        super().__init__("another collector of this log is at work; let it end, then try again")


class LockLost(Refused):
    """The collector's lock is gone, as when Postgres was started again."""

    def __init__(self) -> None:
        super().__init__(
            "the lock that keeps other collectors away is gone (was Postgres started again?); "
            "nothing is lost: start the collector again"
        )


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


class BucketOfNobody(Refused):
    """Objects that no log has marked as its own, and of which this log names none."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"the payload store has {count:,} objects and this log names none of them, so they "
            "may be another log's; give each deployment a bucket of its own, or say that they "
            "are this log's: `streams payloads collect --claim`"
        )


class EndedAlready(Refused):
    """A result that has expired before."""

    def __init__(self, what: str, at: datetime, why: str) -> None:
        super().__init__(f"{what} expired at {at.isoformat()} ({why}); there is nothing to do")


class NothingToEnd(Refused):
    """An execution without anything that could be ended."""

    def __init__(self, execution_id: int) -> None:
        super().__init__(
            f"execution {execution_id} is not there, or holds nothing that has not expired; "
            "look with `streams execution show` and `GET /api/executions/ID/results`"
        )


class StillNeeded(Refused):
    """What an execution stored that runs, or is part of one that does."""

    def __init__(self, execution_id: int) -> None:
        super().__init__(
            f"execution {execution_id}, or the one that called it, has not ended and may read its "
            "results; wait for its end, or cancel it (`streams execution cancel`)"
        )
