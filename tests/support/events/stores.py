"""Event stores to hold to their promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streams.log.port import EventStore


@dataclass(frozen=True, slots=True)
class Subject:
    """A store, and ids that nobody else uses in it."""

    store: EventStore
    next_id: Callable[[], int]
