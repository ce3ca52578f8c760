"""A bucket that asks nobody who they are, for clients that cannot sign for a local server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from streams.local.s3 import find_rclone
from tests.support.servers.programs import serving


@dataclass(frozen=True, slots=True)
class Bucket:
    """A folder that rclone serves: the XML protocol that S3 and Google's storage share."""

    endpoint: str
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def google_key(self) -> str:
        """What tells Google's client to ask for no token, and nobody for one."""
        nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
        place = {"gcs_base_url": self.endpoint, "disable_oauth": True}
        return orjson.dumps({**nobody, **place}).decode()

    def files(self, prefix: str) -> list[Path]:
        """Return the objects below a prefix."""
        return sorted(one for one in (self.folder / prefix).rglob("*") if one.is_file())


@asynccontextmanager
async def open_bucket(folder: Path) -> AsyncIterator[Bucket]:
    """Serve a folder whose only bucket is `bucket`."""
    (folder / "bucket").mkdir(parents=True)
    command = [find_rclone(), "serve", "s3", "--addr", "127.0.0.1:0", folder]
    environment = {**os.environ, "RCLONE_CONFIG": ""}
    async with serving(command, r"server on \[(http://[^]]+)/\]", environment=environment) as said:
        yield Bucket(said[1], folder / "bucket")
