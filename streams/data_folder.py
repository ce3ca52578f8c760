"""Paths inside the data folder of a stack or a role."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from streams.errors import Refused

DEFAULT_DATA = Path(".streams")
TIERS_FILE = "tiers.json"


class UnusableFolder(Refused):
    """The path of the data folder has a character that a server reads as a separator."""

    def __init__(self, data: Path) -> None:
        super().__init__(
            f"{data}: a stack's folder may not have a comma, semicolon or line break in its "
            "path, which its servers read as a separator: choose another with --data DIR"
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """The files and folders of one data folder."""

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

    @property
    def scratch(self) -> Path:
        return self.data / "scratch"

    def tiers(self, role: str) -> Path:
        """The file in which a role reports its payload tiers."""
        return self.roles / role / TIERS_FILE

    def address(self, role: str) -> Path:
        """The file in which a role that listens writes its address."""
        return self.roles / f"{role}.json"

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def create(self) -> None:
        """Create the folders, readable by their owner only: they hold passwords.

        Raises:
            UnusableFolder: a server would split its path.
        """
        if any(letter in str(self.data) for letter in ",;\r\n"):
            raise UnusableFolder(self.data)
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.logs, self.config, self.connect_secrets, self.roles):
            folder.mkdir(mode=0o700, exist_ok=True)
        # So that a `git add .` never includes a password.
        (self.data / ".gitignore").write_text("*\n")


def layout_of(data: Path | None) -> Layout:
    """Return the layout of `data`, by default `.streams` in the current folder."""
    return Layout((data or DEFAULT_DATA).expanduser().resolve())


def ready_path(layout: Layout, name: str) -> Path:
    """Return the file a role writes its process id to when it is ready."""
    return layout.roles / f"{name}.ready"


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` atomically with a file that only its owner may read."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
