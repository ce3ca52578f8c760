"""A service of the stack, a server or a role: command, readiness probe, stop signal."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class ServiceState(StrEnum):
    """Lifecycle state of a service."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPED = "stopped"
    FAILED = "failed"


async def _nothing_to_do() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Service:
    """One supervised process.

    `ready` is polled for the running process; it may raise while nothing listens yet. `before`
    runs once before the first start, `after` once after the stop. `needs` names the services
    that must outlive this one; with `waits` it also starts only when they are ready (Connect
    does not: it retries by itself, and starting in parallel saves seconds).
    """

    name: str
    version: str
    address: str
    command: tuple[str, ...]
    log: Path
    ready: Callable[[], Awaitable[bool]]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], Awaitable[None]] = _nothing_to_do
    after: Callable[[], Awaitable[None]] = _nothing_to_do
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
    """A change of a service's state."""

    service: str
    state: ServiceState
    pid: int | None = None
    restarts: int = 0
    detail: str = ""
