"""Runs one role in this process until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from streams.app import ANALYTICS_ROLES, NODE_ROLES, ROLES
from streams.data_folder import layout_of, ready_path, write_private
from streams.errors import Refused
from streams.settings import Settings

ALL_ROLES: Mapping[str, str] = {**ROLES, **NODE_ROLES, **ANALYTICS_ROLES}
_OLD_NAMES = {"broker": "shm-broker"}
"""Old names, accepted for one release."""
Ready = Callable[[], None]
Run = Callable[[Settings, Path, asyncio.Event, Ready], Awaitable[None]]


class UnknownRole(Refused):
    """The role does not exist."""

    def __init__(self, role: str, known: Mapping[str, str]) -> None:
        super().__init__(f"{role}: no such role; known are {', '.join(known)}")


def existing_roles(roles: Mapping[str, str] = ROLES) -> tuple[str, ...]:
    """Return the roles whose modules exist."""
    return tuple(name for name, place in roles.items() if find_spec(place.partition(":")[0]))


def node_roles(settings: Settings) -> tuple[str, ...]:
    """Return the additional roles of a node, by its settings: a broker for sealed memory."""
    cache = settings.payload_store.cache
    wanted = cache.tier_15_carrier == "memfd" and cache.tier_15_node_budget_mb > 0
    return ("shm-broker",) if wanted and hasattr(os, "memfd_create") else ()


def current_name(role: str) -> str:
    """Return the current name of a role, given that or its old name."""
    return _OLD_NAMES.get(role, role)


def find_role(role: str, roles: Mapping[str, str] = ALL_ROLES) -> Run:
    """Import the function of a role.

    Raises:
        UnknownRole: it does not exist.
    """
    role = current_name(role)
    if role not in existing_roles(roles):
        raise UnknownRole(role, roles)
    module, _, function = roles[role].partition(":")
    found: Run = getattr(import_module(module), function)
    return found


def role_folder(settings: Settings, data: Path) -> Path:
    """Return this process's own persistent folder."""
    folder = layout_of(data).roles / settings.runtime.shard_id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


async def run_role(
    run: Run,
    settings: Settings,
    data: Path,
    on_ready: Ready,
    on_failure: Callable[[Exception], object] = lambda _: None,
) -> None:
    """Run a role until SIGTERM or SIGINT; a file tells its supervisor that it is ready.

    `on_failure` may end the process: after a failure some tasks of Faust ignore cancellation,
    and `asyncio.run` would wait for them.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    layout = layout_of(data)
    layout.roles.mkdir(mode=0o700, parents=True, exist_ok=True)
    flag = ready_path(layout, settings.runtime.shard_id)
    flag.unlink(missing_ok=True)

    def ready() -> None:
        write_private(flag, str(os.getpid()).encode())
        on_ready()

    try:
        await run(settings, data, stop, ready)
    except Exception as error:
        flag.unlink(missing_ok=True)
        on_failure(error)
        raise
    finally:
        flag.unlink(missing_ok=True)
