"""Takes away, again and again, everything on a node that is only a copy."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from streams.app import sharing_terms
from streams.data_folder import layout_of, ready_path
from streams.settings import Settings

EVERY_S = 0.02
BROKER_EVERY_S = 1.0


@dataclass(slots=True)
class Lost:
    """How much was taken away."""

    regions: int = 0
    disks: int = 0
    brokers: int = 0


@asynccontextmanager
async def losing_copies(settings: Settings, data: Path) -> AsyncIterator[Lost]:
    """Delete regions and the disk tier, and kill the broker if there is one, during the body."""
    lost = Lost()
    tasks = [
        asyncio.create_task(_lose_files(settings, lost)),
        asyncio.create_task(_kill_brokers(data, lost)),
    ]
    try:
        yield lost
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(ended, asyncio.CancelledError), ended


async def _lose_files(settings: Settings, lost: Lost) -> None:
    while True:
        await asyncio.to_thread(_delete_files, settings, lost)
        await asyncio.sleep(EVERY_S)


def _delete_files(settings: Settings, lost: Lost) -> None:
    space = sharing_terms(settings).space
    for path in space.folder.glob(f"{space.prefix}*"):
        lost.regions += path.name != space.reserve
        path.unlink(missing_ok=True)
    space.ledger.unlink(missing_ok=True)
    disk = Path(settings.payload_store.cache.tier_2_disk_path)
    lost.disks += any(disk.glob("*/*"))
    shutil.rmtree(disk, ignore_errors=True)


async def _kill_brokers(data: Path, lost: Lost) -> None:
    flag, killed = ready_path(layout_of(data), "shm-broker-0"), 0
    while True:
        await asyncio.sleep(BROKER_EVERY_S)
        with suppress(OSError, ValueError, psutil.Error):
            pid = int(flag.read_text())
            # The file outlives its writer: only a incarnation broker of this very stack is killed.
            if pid != killed and str(data) in psutil.Process(pid).cmdline():
                os.kill(pid, signal.SIGKILL)
                lost.brokers, killed = lost.brokers + 1, pid
