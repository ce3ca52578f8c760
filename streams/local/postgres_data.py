"""The data folder of the embedded Postgres: owner and creation."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streams.local.errors import InitdbFailed
from streams.local.process import die_with_parent
from streams.local.unprivileged import hand_over

_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
Become = Callable[[], None]


@dataclass(frozen=True, slots=True)
class PostgresData:
    """The data folder of Postgres and its user.

    Another user than ours may lack access to a parent folder. It then uses an inherited
    descriptor: a path below /proc/self/fd needs no permission on the parents.
    """

    install: Path
    home: Path
    user_id: int | None
    fds: tuple[int, ...]

    @classmethod
    def open(cls, install: Path, home: Path, user_id: int | None) -> PostgresData:
        """Create the folder if missing and open the descriptors its user needs."""
        home.mkdir(mode=0o700, exist_ok=True)
        if user_id is None:
            return cls(install, home, None, ())
        if home.stat().st_uid != user_id:
            hand_over(home, user_id)
        return cls(install, home, user_id, (os.open(home, os.O_RDONLY | os.O_DIRECTORY),))

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)

    def program(self, name: str) -> str:
        return str(self.install / "bin" / name)

    def seen(self, name: str) -> str:
        """Return the path of an entry in the folder as its user accesses it."""
        return f"/proc/self/fd/{self.fds[0]}/{name}" if self.fds else str(self.home / name)

    @property
    def exists(self) -> bool:
        return (self.home / "cluster").exists()


def create_data(data: PostgresData, superuser_password: str) -> None:
    """Run `initdb` in a temporary folder and rename it when it is complete.

    Raises:
        InitdbFailed: `initdb` failed; the message has its reason.
    """
    reasons = []
    for become, user_id in _ways(data.home, data.user_id):
        _prepare(data, superuser_password, user_id)
        done = _initdb(data, become)
        (data.home / "password").unlink()
        if done.returncode == 0:
            if data.user_id is not None:
                hand_over(data.home, data.user_id)
            (data.home / "new").rename(data.home / "cluster")
            return
        reasons.append(done.stderr.strip()[-400:])
    raise InitdbFailed(data.home, reasons)


def _prepare(data: PostgresData, superuser_password: str, user_id: int | None) -> None:
    shutil.rmtree(data.home / "new", ignore_errors=True)
    password = data.home / "password"
    password.touch(mode=0o600)
    password.write_text(superuser_password)
    if user_id is not None:
        hand_over(data.home, user_id)


def _initdb(data: PostgresData, become: Become | None) -> subprocess.CompletedProcess[str]:
    command = [data.program("initdb"), "-D", data.seen("new"), "--username=postgres"]
    command += ["--auth=scram-sha-256", f"--pwfile={data.seen('password')}"]
    command += ["--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
    return subprocess.run(
        command,
        check=False,
        cwd="/",
        pass_fds=data.fds,
        preexec_fn=die_with_parent(become=become),
        capture_output=True,
        text=True,
    )


def _ways(home: Path, user_id: int | None) -> Iterator[tuple[Become | None, int | None]]:
    """Yield the ways to run `initdb`, which requires that its user has a name.

    Our own user has one. Otherwise: as the user of Postgres in a private mount namespace whose
    /etc/passwd names it; if that is forbidden (a container without CAP_SYS_ADMIN), as any user
    of the password file, with a chown of the files afterwards.
    """
    if user_id is None:
        yield None, None
        return
    if sys.platform == "linux":
        passwd = home / "passwd"
        passwd.write_text(f"root:x:0:0::/:/bin/sh\npostgres:x:{user_id}:{user_id}::/:/bin/sh\n")
        passwd.chmod(0o644)
        yield _become_named(user_id, passwd), user_id
    for entry in pwd.getpwall():
        if entry.pw_uid != 0:
            yield _become(entry.pw_uid), entry.pw_uid
            return


def _become(user_id: int) -> Become:
    def become() -> None:
        os.setgroups([])
        os.setgid(user_id)
        os.setuid(user_id)

    return become


def _become_named(user_id: int, passwd: Path) -> Become:
    libc = ctypes.CDLL(None, use_errno=True)
    become_user = _become(user_id)

    def become() -> None:
        # Each may be refused; initdb then reports that the user has no name, and the next way
        # is tried.
        if libc.unshare(_CLONE_NEWNS) == 0:
            libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
            libc.mount(os.fsencode(passwd), b"/etc/passwd", None, _MS_BIND, None)
        become_user()

    return become
