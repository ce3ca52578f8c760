"""Wiring of forks: replay of the source, its playbook and its payloads."""

from __future__ import annotations

from contextlib import nullcontext

import asyncpg

from streams.catalog.port import Playbooks
from streams.clock import SystemClock
from streams.events.codec import Codec
from streams.payload.port import PayloadStore
from streams.replay.fork.forks import Forks
from streams.replay.postgres import PostgresStoredLog
from streams.replay.verified import VerifiedLog
from streams.retention.postgres import PostgresArchiveIndex
from streams.retention.reading import ArchivedLog


def forks_of(
    pool: asyncpg.Pool, codec: Codec, playbooks: Playbooks, payloads: PayloadStore
) -> Forks:
    """Return forks of the executions in the log behind a pool."""
    index = PostgresArchiveIndex(pool)
    log = ArchivedLog(PostgresStoredLog(pool), index, lambda: nullcontext(payloads), codec)
    return Forks(log, VerifiedLog(log, codec), playbooks, payloads, SystemClock())
