"""A NATS server with JetStream that a test has for itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from streams.local.jars import cache_folder
from tests.support.servers.programs import serving

VERSION = "v2.11.10"
BUILD_S = 240.0
"""The build takes about a minute, once for each machine."""
LOGIN = {"nats_user": "noetl", "nats_password": "a word/of this test"}
CONFIG = """
listen: "127.0.0.1:{port}"
jetstream {{ store_dir: "{folder}" }}
authorization {{ user: "{nats_user}", password: "{nats_password}" }}
"""


async def nats_program() -> Path:
    """Return the server's program: installed, built before, or built now with go."""
    if (installed := shutil.which("nats-server")) is not None:
        return Path(installed)
    folder = cache_folder() / f"nats-server-{VERSION}"
    if (built := folder / "nats-server").exists():
        return built
    if (go := shutil.which("go")) is None:
        pytest.skip("neither nats-server nor go, which could build it, is installed")
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    process = await asyncio.create_subprocess_exec(
        *(go, "install", f"github.com/nats-io/nats-server/v2@{VERSION}"),
        env={**os.environ, "GOBIN": str(making), "GOFLAGS": "-mod=mod"},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(BUILD_S):
            _, said = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        pytest.skip(f"nats-server was not built within {BUILD_S:.0f} s")
    if process.returncode != 0:
        pytest.skip(f"nats-server cannot be built: {said.decode()[-300:]}")
    folder.mkdir(parents=True, exist_ok=True)
    (making / "nats-server").replace(built)
    making.rmdir()
    return built


@asynccontextmanager
async def nats_server(home: Path, *, port: int | None = None) -> AsyncIterator[dict[str, str]]:
    """Run a server on this machine's loopback; yield the fields of a credential for it."""
    program = await nats_program()
    if port is None:
        with socket.create_server(("127.0.0.1", 0)) as chosen:
            port = chosen.getsockname()[1]
    config = home / "nats.conf"
    config.write_text(CONFIG.format(port=port, folder=home / "jetstream", **LOGIN))
    async with serving([program, "--config", config], "Server is ready"):
        yield {"nats_url": f"nats://127.0.0.1:{port}", **LOGIN}
