"""Limits of a planner and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from streams.kafka.work.item import INLINE_DOCUMENT_BYTES

LARGEST_EXPRESSION_PAYLOAD_BYTES = 16 * 2**20
"""Larger results are not loaded for the planner's expressions."""


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
    """Frames in flight, attempts and timeouts."""

    window: int = 16
    max_attempts: int = 5
    max_visits: int = 10_000
    lease_margin: timedelta = timedelta(seconds=5)
    retry_delay: timedelta = timedelta(seconds=1)
    republish_after: timedelta = timedelta(seconds=30)
    """How long an item may stay unclaimed before it is published again; doubles each time."""
    inline_bytes: int = INLINE_DOCUMENT_BYTES
    """Most bytes of a document, inputs or return value in an event."""
    policies: Mapping[str, Mapping[str, int]] = field(
        default_factory=lambda: {"loop": _loop(), "fanout": _fanout()}
    )
