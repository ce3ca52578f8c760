"""A part of the stack, as data: what to run, when it is ready, how to stop it.

Servers and our own long-running roles are services alike: the supervisor knows nothing else
about them.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class ServiceState(StrEnum):
    """Where a service is in its life."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPED = "stopped"
    FAILED = "failed"


async def _nothing_to_do() -> None:
    """The preparation of a service that needs none."""


@dataclass(frozen=True, slots=True)
class Service:
    """One supervised process.

    `ready` is asked again and again and answers for the process now running; it may
    raise what its client raises while nothing listens yet. `before` runs once ahead of the
    first start. `needs` names the services that must outlive this one; with `waits` it is
    also started only when they are ready (Connect does not: it retries by itself, and
    starting side by side saves seconds).
    """

    name: str
    version: str
    address: str
    command: tuple[str, ...]
    log: Path
    ready: Callable[[], Awaitable[bool]]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], Awaitable[None]] = _nothing_to_do
    folder: Path = Path("/")
    needs: tuple[str, ...] = ()
    waits: bool = True
    user_id: int | None = None
    inherited_fds: tuple[int, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL
    start_seconds: float = 120.0
    stop_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """What the supervisor says when something about a service changes."""

    service: str
    state: ServiceState
    pid: int | None = None
    restarts: int = 0
    detail: str = ""
