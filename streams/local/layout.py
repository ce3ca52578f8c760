"""Where things are in a stack's data folder; the only place that knows the names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from streams.local.errors import UnusableFolder

DEFAULT_DATA = Path(".streams")
TIERS_FILE = "tiers.json"


@dataclass(frozen=True, slots=True)
class Layout:
    """The data folder of one stack, as named places."""

    data: Path

    @property
    def state(self) -> Path:
        return self.data / "state.json"

    @property
    def lock(self) -> Path:
        return self.data / "lock"

    @property
    def ports(self) -> Path:
        return self.data / "ports.json"

    @property
    def secrets(self) -> Path:
        return self.data / "secrets.json"

    @property
    def credential_key(self) -> Path:
        return self.data / "credential.key"

    @property
    def worker_token(self) -> Path:
        return self.data / "worker.token"

    @property
    def connect_secrets(self) -> Path:
        return self.data / "connect-secrets"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def config(self) -> Path:
        return self.data / "config"

    @property
    def postgres(self) -> Path:
        return self.data / "postgres"

    @property
    def kafka(self) -> Path:
        return self.data / "kafka"

    @property
    def s3(self) -> Path:
        return self.data / "s3"

    @property
    def registry(self) -> Path:
        return self.data / "registry"

    @property
    def roles(self) -> Path:
        return self.data / "roles"

    def tiers(self, role: str) -> Path:
        """Where a role tells what its payload tiers did."""
        return self.roles / role / TIERS_FILE

    def address(self, role: str) -> Path:
        """Where a role that listens tells its address."""
        return self.roles / f"{role}.json"

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def create(self) -> None:
        """Make the folders; only the owner may enter, since passwords lie inside.

        Raises:
            UnusableFolder: a server would take its path for several.
        """
        if any(letter in str(self.data) for letter in ",;\r\n"):
            raise UnusableFolder(self.data)
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.logs, self.config, self.connect_secrets, self.roles):
            folder.mkdir(mode=0o700, exist_ok=True)
        # So that a stray `git add .` never takes a password along.
        (self.data / ".gitignore").write_text("*\n")


def layout_of(data: Path | None) -> Layout:
    """Name the places below `data`, by default below `.streams` of the current folder."""
    return Layout((data or DEFAULT_DATA).expanduser().resolve())


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` in one step with a file that only its owner may read."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
