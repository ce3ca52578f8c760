"""Errors of the log.

Refused
├── VersionConflict       another writer appended to this stream first
├── IdempotencyConflict   the same key with other content
├── RootEnded             the root is terminal
├── ForeignRoot           the root belongs to another tenant, or is of another type
└── BadBatch              the batch contradicts itself
Unavailable
└── LogUnavailable        Postgres cannot be reached
"""

from streams.errors import Refused, Unavailable
from streams.events.model import Root


class VersionConflict(Refused):
    """Another writer appended to this stream first."""

    def __init__(self, stream: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"{stream}: expected_version is {expected}, the stream is at {found}; "
            "read it again and retry"
        )
        self.stream, self.expected, self.found = stream, expected, found


class IdempotencyConflict(Refused):
    """An event with this idempotency key exists with other content."""

    def __init__(self, root: Root, key: str, stored_id: int) -> None:
        super().__init__(
            f"{root}: idempotency_key {key!r} was used by event {stored_id} with other content; "
            "use a new key"
        )
        self.root, self.key, self.stored_id = root, key, stored_id


class RootEnded(Refused):
    """The root has ended and accepts no more events of this type."""

    def __init__(self, root: Root, event_type: str) -> None:
        super().__init__(f"{root}: has ended, so its event_type {event_type} is refused")
        self.root, self.event_type = root, event_type


class ForeignRoot(Refused):
    """The root exists under another tenant, organization or type."""

    def __init__(self, root: Root, field: str) -> None:
        super().__init__(f"{root}: its {field} differs from the event's")
        self.root, self.field = root, field


class BadBatch(Refused):
    """A batch that contradicts itself."""


class LogUnavailable(Unavailable):
    """Postgres cannot be reached, or not in time."""

    dependency = "Postgres"
