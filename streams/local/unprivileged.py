"""An unprivileged user for Postgres, which refuses to run as root.

The user is numeric, without an entry in the password file. docs/decisions/0010-embedded-stack.md
describes the two obstacles: programs below a folder that only root may enter, and `initdb`,
which requires a user name.
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

# systemd's range for dynamic users: free by convention, and within the 65,536 users of a
# container.
_USER_IDS = range(61_184, 65_519)


def choose_user_id(data: Path, taken: Collection[int]) -> int:
    """Return the user for a data folder: deterministic, and not taken."""
    start = int.from_bytes(hashlib.sha256(os.fsencode(data)).digest()[:4], "big")
    for step in range(len(_USER_IDS)):
        candidate = _USER_IDS[(start + step) % len(_USER_IDS)]
        if candidate not in taken:
            return candidate
    raise NoUnprivilegedUser("every user id from 61184 to 65518 is taken")


def user_id_for(data: Path) -> int | None:
    """Return the user to run Postgres as; None: the current one."""
    if os.geteuid() != 0:
        return None
    return choose_user_id(data, {entry.pw_uid for entry in pwd.getpwall()})


def reachable_install(install: Path, libraries: Path, user_id: int) -> Path:
    """Return an installation of Postgres that `user_id` can execute.

    That is the installed one, or a root-owned copy of it in a temporary folder, which can be
    recreated at any time.
    """
    if _runs(install, user_id):
        return install
    source = install.stat()
    digest = hashlib.sha256(
        f"{install}\n{source.st_mtime_ns}\n{source.st_ino}".encode()
    ).hexdigest()
    reasons = []
    for parent in dict.fromkeys((Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/var/lib"))):  # noqa: S108
        copy = parent / f"noetl-streams-postgres-{digest[:16]}"
        try:
            _copy_once(install, libraries, copy)
        except OSError as error:
            reasons.append(str(error))
            continue
        copied = copy / install.parent.name / install.name
        if _is_root_owned(copy) and _runs(copied, user_id):
            return copied
        reasons.append(f"{copy} is not owned by root or not executable")
    raise NoUnprivilegedUser("; ".join(reasons))


def _runs(install: Path, user_id: int) -> bool:
    """Return whether `user_id` can execute it, despite folder modes and noexec mounts."""
    with suppress(OSError):
        command = [str(install / "bin" / "postgres"), "--version"]
        result = subprocess.run(
            command,
            check=False,
            user=user_id,
            group=user_id,
            extra_groups=[],
            cwd="/",
            capture_output=True,
        )
        return result.returncode == 0
    return False


def _copy_once(install: Path, libraries: Path, copy: Path) -> None:
    """Copy the installation with its libraries, in the layout of the wheel."""
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


def _is_root_owned(copy: Path) -> bool:
    """Return whether root owns this folder and no other user can write to it.

    In a world-writable parent any user could have created it first.
    """
    found = copy.lstat()
    private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and private


def hand_over(folder: Path, user_id: int) -> None:
    """Change the owner of a folder and its content to `user_id`."""
    os.chown(folder, user_id, user_id, follow_symlinks=False)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent, name), user_id, user_id, follow_symlinks=False)
