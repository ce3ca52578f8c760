"""Errors of bundles.

Refused
├── NotABundle        the file is something else
├── NewerBundle       a newer program wrote it
├── NotInBundle       the bundle does not have what was asked for
└── PayloadNotStored  an event refers to an object that the store does not have
Inconsistent
└── DamagedBundle     a byte is not what export wrote
    └── TruncatedBundle  the file ends early
"""

from __future__ import annotations

from streams.errors import Inconsistent, Refused


class NotABundle(Refused):
    """The file is not a bundle."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file}: not a bundle: {why}; write one with `streams bundle export`")


class NewerBundle(Refused):
    """The bundle has a format that this program does not know."""

    def __init__(self, file: str, version: int, known: int) -> None:
        super().__init__(
            f"{file}: format version {version}; this program reads up to {known}: upgrade it"
        )


class NotInBundle(Refused):
    """The bundle does not have what was asked for."""


class PayloadNotStored(Refused):
    """An event refers to an object that the payload store does not have."""

    def __init__(self, uri: str, event: str) -> None:
        super().__init__(
            f"{uri}: not in the payload store, and not expired; {event} refers to it: restore the "
            "object from a backup of the bucket, or export with --no-payloads"
        )


class DamagedBundle(Inconsistent):
    """A byte of the file is not what export wrote. `entry` is where."""

    def __init__(self, entry: str, what: str) -> None:
        super().__init__(f"{entry}: {what}; get another copy of the bundle")
        self.entry, self.what = entry, what


class TruncatedBundle(DamagedBundle):
    """The file ends before its last entry."""

    def __init__(self, entry: str) -> None:
        super().__init__(entry, "the file ends here, before its last entry")
