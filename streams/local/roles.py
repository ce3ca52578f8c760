"""Roles as services of the stack: each a process of `streams run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import psutil

from streams.data_folder import Layout, ready_path
from streams.local.service import Service

_STOP_SECONDS = 20.0


def pool_workers(pool: str) -> str:
    """Return the key of a pool's workers among the roles."""
    return "worker" if pool == "default" else f"worker:{pool}"


def role_services(layout: Layout, roles: Mapping[str, int]) -> tuple[Service, ...]:
    """Return a service for every process of the roles, such as `worker-0` and `worker-gpu-0`."""
    return tuple(
        _role_service(layout, role, f"{role.replace(':', '-')}-{number}")
        for role, count in roles.items()
        for number in range(count)
    )


def _role_service(layout: Layout, role: str, name: str) -> Service:
    role, _, pool = role.partition(":")
    of_pool = ("--pool", pool) if pool else ()
    folder = ("--data", str(layout.data))
    ready_file = ready_path(layout, name)

    async def ready() -> bool:
        return psutil.pid_exists(int(ready_file.read_text()))

    return Service(
        name=name,
        version=version("noetl-streams"),
        address="",
        command=(sys.executable, "-P", "-m", "streams", "run", role, *of_pool, *folder),
        log=layout.log(name),
        ready=ready,
        # Roles inherit the whole environment: variables used in settings, of cloud clients
        # and proxies. The name is also the member id in the Kafka group.
        environment={**os.environ, "NOETL_SHARD_ID": name},
        folder=Path.cwd(),
        start_seconds=60.0,
        stop_seconds=_STOP_SECONDS,
    )
