"""Names of regions, which separate the users and stacks of a machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

SEALED = "/noetl-memfd-"
"""Prefix of regions held by a broker."""


@dataclass(frozen=True, slots=True)
class Space:
    """The regions of one user and one payload store; separate from all others."""

    folder: Path
    mark: str

    @property
    def users(self) -> str:
        """Prefix of this user's files, including other stacks'."""
        return f"noetl-{os.geteuid()}-"

    @property
    def prefix(self) -> str:
        """Prefix of this space's files."""
        return f"{self.users}{self.mark}-"

    @property
    def sealed_prefix(self) -> str:
        """Prefix of this space's sealed regions."""
        return f"{SEALED}{os.geteuid()}-{self.mark}-"

    @property
    def ledger(self) -> Path:
        """Path of the file with the bytes in use."""
        return self.folder / f"{self.users}{self.mark}.ledger"

    @property
    def reserve(self) -> str:
        """Name of the file whose length is the total of the broker's regions."""
        return f"{self.prefix}sealed"

    @property
    def socket(self) -> Path:
        """Path of the broker's socket."""
        return self.folder / f"{self.users}{self.mark}.sock"


def space_in(folder: Path, *store: str | None) -> Space:
    """Return the space of the payload store identified by `store`."""
    words = "\0".join(word or "" for word in store)
    return Space(folder, sha256(words.encode()).hexdigest()[:12])
