"""Why a payload cannot be had.

PoisonRecord
├── PayloadMissing       there is no such object
└── PayloadCorrupt       the bytes are not those that were stored
Unavailable
└── PayloadUnavailable   the store is down
Refused
└── NoSuchBackend        the settings name a store this version cannot use

Missing and corrupt are poison, not inconsistency: no rebuild from the log brings an object
back, and one tenant's lost object must not stop the process that serves the others.
"""

from __future__ import annotations

from streams.errors import PoisonRecord, Refused, Unavailable


class PayloadMissing(PoisonRecord):
    """There is no such object."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"{uri}: the payload is not in the store; was it expired or deleted by hand? "
            "restore the object from a backup of the bucket"
        )
        self.uri = uri


class PayloadCorrupt(PoisonRecord):
    """The bytes are not those that were stored."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(f"{uri}: {why}; restore the object from a backup of the bucket")
        self.uri = uri


class PayloadUnavailable(Unavailable):
    """The store is down, or does not let us in; asking again is safe."""


class NoSuchBackend(Refused):
    """The settings name a store that this version cannot use."""

    def __init__(self, backend: str) -> None:
        super().__init__(
            f"payload_store.backend {backend!r} is not built yet; use 's3', 'seaweedfs' or 'local'"
        )
