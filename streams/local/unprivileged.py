"""Running Postgres when we are root, which it refuses to be.

It gets a numeric user of its own; no entry in the password file is assumed. Two things
then stand in the way, and docs/decisions/0010-embedded-stack.md tells how each is passed:
programs below a folder that only root may enter, and `initdb`, which wants the user's name.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from streams.local.errors import NoUnprivilegedUser

# systemd's range for users that exist only while a service runs: free by convention, and
# small enough to be mapped in a container with 65,536 users.
_USER_IDS = range(61_184, 65_519)


def choose_user_id(data: Path, taken: Collection[int]) -> int:
    """Pick the user for a data folder: the same every time, and nobody else's."""
    start = int.from_bytes(hashlib.sha256(os.fsencode(data)).digest()[:4], "big")
    for step in range(len(_USER_IDS)):
        candidate = _USER_IDS[(start + step) % len(_USER_IDS)]
        if candidate not in taken:
            return candidate
    raise NoUnprivilegedUser("every user id from 61184 to 65518 is taken")


def user_id_for(data: Path) -> int | None:
    """Return the user to run Postgres as; None means: as ourselves."""
    if os.geteuid() != 0:
        return None
    return choose_user_id(data, {entry.pw_uid for entry in pwd.getpwall()})


def reachable_install(install: Path, libraries: Path, user_id: int) -> Path:
    """Return an installation of Postgres that `user_id` can execute.

    That is the installed one, or a root-owned copy of it in the system's folder for
    temporary files: a copy can be made again at any time, so losing it loses nothing.
    """
    if _runs(install, user_id):
        return install
    made = install.stat()
    digest = hashlib.sha256(f"{install}\n{made.st_mtime_ns}\n{made.st_ino}".encode()).hexdigest()
    reasons = []
    for parent in dict.fromkeys((Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/var/lib"))):  # noqa: S108
        copy = parent / f"noetl-streams-postgres-{digest[:16]}"
        try:
            _copy_once(install, libraries, copy)
        except OSError as error:
            reasons.append(str(error))
            continue
        copied = copy / install.parent.name / install.name
        if _is_ours(copy) and _runs(copied, user_id):
            return copied
        reasons.append(f"{copy} is not root's own or may not be executed")
    raise NoUnprivilegedUser("; ".join(reasons))


def _runs(install: Path, user_id: int) -> bool:
    """Try it: whatever forbids execution (folder modes, noexec mounts) shows here."""
    with suppress(OSError):
        command = [str(install / "bin" / "postgres"), "--version"]
        tried = subprocess.run(
            command,
            check=False,
            user=user_id,
            group=user_id,
            extra_groups=[],
            cwd="/",
            capture_output=True,
        )
        return tried.returncode == 0
    return False


def _copy_once(install: Path, libraries: Path, copy: Path) -> None:
    """Copy the installation beside its libraries, as the wheel lays them out."""
    if copy.exists():
        return
    scratch = Path(tempfile.mkdtemp(prefix=".noetl-streams-", dir=copy.parent))
    try:
        shutil.copytree(install, scratch / install.parent.name / install.name, symlinks=True)
        shutil.copytree(libraries, scratch / libraries.name, symlinks=True)
        scratch.chmod(0o755)
        with suppress(FileExistsError):
            scratch.rename(copy)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _is_ours(copy: Path) -> bool:
    """Tell whether root made this folder and nobody else can have changed it.

    In a folder anyone may write to, anyone could have put one of that name there first.
    """
    found = copy.lstat()
    private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and private


def hand_over(folder: Path, user_id: int) -> None:
    """Give a folder and all that is in it to `user_id`."""
    os.chown(folder, user_id, user_id, follow_symlinks=False)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent, name), user_id, user_id, follow_symlinks=False)
