"""Whose regions they are: names that keep the users and the stacks of a machine apart."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

SEALED = "/noetl-memfd-"
"""How the names of regions begin that a broker has."""


@dataclass(frozen=True, slots=True)
class Space:
    """The regions of one user and one payload store: nobody else reads, counts or sweeps them."""

    folder: Path
    mark: str

    @property
    def users(self) -> str:
        """How the names of this user's files begin, those of other stacks included."""
        return f"noetl-{os.geteuid()}-"

    @property
    def prefix(self) -> str:
        """How the names of this space's files begin."""
        return f"{self.users}{self.mark}-"

    @property
    def sealed_prefix(self) -> str:
        """How the names of this space's sealed regions begin."""
        return f"{SEALED}{os.geteuid()}-{self.mark}-"

    @property
    def ledger(self) -> Path:
        """Where the bytes in use are written down."""
        return self.folder / f"{self.users}{self.mark}.ledger"

    @property
    def reserve(self) -> str:
        """The name of the file that is as long as the broker's regions together."""
        return f"{self.prefix}sealed"

    @property
    def socket(self) -> Path:
        """Where the broker listens."""
        return self.folder / f"{self.users}{self.mark}.sock"


def space_in(folder: Path, *store: str | None) -> Space:
    """Return the space of those who have the same payload store, said in a few words."""
    words = "\0".join(word or "" for word in store)
    return Space(folder, sha256(words.encode()).hexdigest()[:12])
