"""Errors of events, with the event type and field.

Refused
└── BadEvent
    ├── MissingField      tenant, organization or another mandatory field is absent
    ├── UnknownSchema     no such event type, or no such version of it
    ├── BadField          a field's value breaks the catalogue's rule
    ├── NotUtc            a time without UTC
    ├── InlineTooLarge    data that belongs in the payload store
    ├── MutablePayload    a payload reference that is not content-addressed
    └── ForeignPayload    a payload of another tenant or organization
"""

from streams.errors import Inconsistent, PoisonRecord, Refused


class BadEvent(Refused):
    """An event that breaks the contract of the envelope."""

    def __init__(self, event_type: str, field: str, why: str) -> None:
        super().__init__(f"{event_type}: {field}: {why}")
        self.event_type, self.field = event_type, field


class MissingField(BadEvent):
    """A mandatory field is absent or empty."""

    def __init__(self, event_type: str, field: str) -> None:
        super().__init__(event_type, field, "is missing; events of this type require it")


class UnknownSchema(BadEvent):
    """The catalogue does not know this event type or version."""


class BadField(BadEvent):
    """A field's value breaks the catalogue's rule for it."""


class NotUtc(BadEvent):
    """A time that is not in UTC."""


class InlineTooLarge(BadEvent):
    """Too much inline data."""


class MutablePayload(BadEvent):
    """A payload reference that is not content-addressed."""


class ForeignPayload(BadEvent):
    """A payload reference into another tenant or organization."""


class UndecodableEvent(PoisonRecord):
    """Bytes that are not an event."""


class UnreadableEvent(Inconsistent):
    """An event of the log without a value that its type requires."""

    def __init__(self, event_type: str, field: str) -> None:
        super().__init__(
            f"{event_type}: its routing value {field} is missing or unknown; "
            "upgrade this program if the event is newer than it"
        )
