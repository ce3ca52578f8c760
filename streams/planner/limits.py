"""The bounds a planner keeps; a deployment may set others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from streams.kafka.work.item import INLINE_DOCUMENT_BYTES

LARGEST_EXPRESSION_PAYLOAD_BYTES = 16 * 2**20
"""A result larger than this is not loaded for an expression of the planner."""


def _loop() -> dict[str, int]:
    return {
        "size": 50,
        "duration_ms": 30_000,
        "memory_bytes": 67_108_864,
        "parallelism": 1,
        "row_concurrency": 16,
    }


def _fanout() -> dict[str, int]:
    return {
        "size": 1,
        "duration_ms": 5_000,
        "memory_bytes": 16_777_216,
        "parallelism": 8,
        "row_concurrency": 1,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How many frames are in flight, how often one is tried, how long is waited."""

    window: int = 16
    max_attempts: int = 5
    max_visits: int = 10_000
    lease_margin: timedelta = timedelta(seconds=5)
    retry_delay: timedelta = timedelta(seconds=1)
    republish_after: timedelta = timedelta(seconds=30)
    """How long an item may wait unclaimed before it is published again; doubles each time."""
    inline_bytes: int = INLINE_DOCUMENT_BYTES
    """What an event carries of a document, of inputs, or of what a playbook returns."""
    policies: Mapping[str, Mapping[str, int]] = field(
        default_factory=lambda: {"loop": _loop(), "fanout": _fanout()}
    )
