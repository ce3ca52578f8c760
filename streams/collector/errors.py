"""Errors of the collector.

Refused
├── CollectorBusy    another collector is running
├── LockLost         another collector may have started
├── GraceTooShort    writers cache longer than this that a payload is stored
├── BucketOfAnother  the objects belong to another log
├── BucketOfNobody   the objects are not marked, and this log references none of them
├── EndedAlready     the result has already expired
├── NothingToEnd     the execution does not exist, or has nothing to expire
└── StillNeeded      a running execution may read it
"""

from __future__ import annotations

from datetime import datetime, timedelta

from streams.errors import Refused


class CollectorBusy(Refused):
    """Another collector of this log is running."""

    def __init__(self) -> None:
        super().__init__("another collector of this log is running; wait for its end, then retry")


class LockLost(Refused):
    """The collector's lock was lost, for example because Postgres restarted."""

    def __init__(self) -> None:
        super().__init__(
            "the collector's lock was lost (did Postgres restart?); no data is lost: "
            "start the collector again"
        )


class GraceTooShort(Refused):
    """The grace is shorter than writers cache that an object exists."""

    def __init__(self, grace: timedelta, least: timedelta) -> None:
        super().__init__(
            f"a grace of {grace.total_seconds():g} s is too short: writers cache what they stored "
            f"for {least.total_seconds():g} s; use that or more"
        )


class BucketOfAnother(Refused):
    """Another log's collector marked the bucket."""

    def __init__(self, found: str, ours: str, key: str) -> None:
        super().__init__(
            f"the payload store belongs to log {found}, and this is log {ours}: objects of the "
            "other log would be deleted; use one bucket per deployment, or remove the "
            f"object {key} if the other log is gone"
        )


class BucketOfNobody(Refused):
    """No log has marked the objects, and this log references none of them."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"the payload store has {count:,} objects and this log references none of them, so "
            "they may be another log's; use one bucket per deployment, or claim them for this "
            "log: `streams payloads collect --claim`"
        )


class EndedAlready(Refused):
    """The result has already expired."""

    def __init__(self, what: str, at: datetime, why: str) -> None:
        super().__init__(f"{what} expired at {at.isoformat()} ({why}); there is nothing to do")


class NothingToEnd(Refused):
    """The execution does not exist, or has nothing to expire."""

    def __init__(self, execution_id: int) -> None:
        super().__init__(
            f"execution {execution_id} does not exist, or has nothing left to expire; "
            "see `streams execution show` and `GET /api/executions/ID/results`"
        )


class StillNeeded(Refused):
    """The execution, or an outer one, is running and may read the result."""

    def __init__(self, execution_id: int) -> None:
        super().__init__(
            f"execution {execution_id}, or the one that called it, has not ended and may read its "
            "results; wait for its end, or cancel it (`streams execution cancel`)"
        )
