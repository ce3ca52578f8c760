"""Errors of payloads.

PoisonRecord
├── PayloadMissing       the object does not exist
└── PayloadCorrupt       the bytes are not those that were stored
    └── PayloadBomb      they decompress to more than the reference says
Unavailable
└── PayloadUnavailable   the store is down
Refused
├── PayloadForeign       it belongs to another tenant or organization
└── NoSuchBackend        the settings name a store this version cannot use

Missing and corrupt are poison, not inconsistency: no rebuild from the log brings an object
back, and one tenant's lost object must not stop the process that serves the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.errors import PoisonRecord, Refused, Unavailable

if TYPE_CHECKING:
    from streams.payload.port import Scope


class PayloadMissing(PoisonRecord):
    """The object does not exist."""

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


class PayloadBomb(PayloadCorrupt):
    """The object decompresses to more than its reference says; it was stopped there."""


class PayloadUnavailable(Unavailable):
    """The store is down, or denies access; retrying is safe."""

    dependency = "the payload store"


class PayloadForeign(Refused):
    """A reference of another tenant or organization."""

    def __init__(self, uri: str, scope: Scope) -> None:
        super().__init__(
            f"{uri} does not belong to tenant {scope.tenant_id!r} and organization "
            f"{scope.organization_id!r}; use a reference that was made there"
        )
        self.uri = uri


class NoSuchBackend(Refused):
    """The settings name a store that this version cannot use."""

    def __init__(self, backend: str, why: str) -> None:
        super().__init__(f"payload_store.backend {backend!r} cannot be used: {why}")
