"""The package promises Python 3.11: nothing newer is used, and the set-up runs on the oldest here.

Debian 12 has 3.11.2. What patch releases of 3.11 added later is listed below, because neither
mypy nor ruff knows patch releases.
"""

from __future__ import annotations

import ast
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from streams.local.unpack import UnsafeArchive, unpack
from tests.support.servers.shared import REPOSITORY

LATER_ARGUMENTS = {
    "extractall": {"filter"},  # 3.11.4
    "extract": {"filter"},  # 3.11.4
    "unpack_archive": {"filter"},  # 3.11.4
    "parseaddr": {"strict"},  # 3.11.10
    "getaddresses": {"strict"},  # 3.11.10
}
"""Arguments that a patch release of 3.11 added."""
LATER_NAMES = {"data_filter", "tar_filter", "fully_trusted_filter", "extraction_filter"}
GUARDED = {"streams/local/unpack.py"}
"""Modules that ask whether they are there."""
SETUP_TESTS = (
    "local/test_jars.py",
    "local/test_fetch.py",
    "local/test_java.py",
    "local/test_jvm.py",
)
IMPORT_ALL = """
import importlib, pkgutil, streams
for found in pkgutil.walk_packages(streams.__path__, "streams."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""


def later_features(text: str) -> Iterator[str]:
    """Yield what a module uses that 3.11.0 does not have."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in LATER_NAMES:
                yield f"line {node.lineno}: {name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else called.id
            given = {keyword.arg for keyword in node.keywords}
            for argument in given & LATER_ARGUMENTS.get(name, set()):
                yield f"line {node.lineno}: {name}({argument}=)"


def test_no_module_uses_what_a_patch_release_added() -> None:
    found = {
        str(path.relative_to(REPOSITORY)): uses
        for path in sorted((REPOSITORY / "streams").rglob("*.py"))
        if (uses := list(later_features(path.read_text("utf-8"))))
    }
    assert set(found) <= GUARDED, found


def test_a_use_is_noticed() -> None:
    text = 'archive.extractall(target, filter="data")\ntarfile.data_filter\n'
    assert len(list(later_features(text))) == 2


@cache
def oldest() -> str | None:
    """Return the oldest Python 3.11 of this machine that is older than the one running."""
    places = [
        Path("/usr/bin/python3"),
        Path("/usr/bin/python3.11"),
        Path("/usr/local/bin/python3.11"),
    ]
    places += Path.home().glob(".pyenv/versions/3.11.*/bin/python3")
    found = {}
    for place in places:
        if place.exists():
            asked = "import sys; print(*sys.version_info[:3])"
            answer = subprocess.run(
                [place, "-c", asked], capture_output=True, text=True, check=False
            )
            if answer.returncode == 0:
                found[tuple(map(int, answer.stdout.split()))] = str(place)
    older = [version for version in found if (3, 11) <= version < (3, 12)]
    older = [version for version in older if version < sys.version_info[:3]]
    return found[min(older)] if older else None


def on_the_oldest(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it with our packages: those of one minor version fit all its patch releases."""
    if (python := oldest()) is None or sys.version_info[:2] != (3, 11):
        pytest.skip("needs an older Python 3.11 than the one that runs the tests")
    path = os.pathsep.join((str(REPOSITORY), sysconfig.get_paths()["purelib"]))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [python, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env=environment,
        timeout=120,
    )


def test_every_module_can_be_imported_on_the_oldest_python() -> None:
    answer = on_the_oldest("-c", IMPORT_ALL)
    assert answer.returncode == 0, answer.stderr


def test_the_set_up_works_on_the_oldest_python() -> None:
    tests = [f"tests/unit/{name}" for name in SETUP_TESTS]
    answer = on_the_oldest("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert answer.returncode == 0, answer.stdout[-4000:]


def archive_of(path: Path, entry: tarfile.TarInfo, data: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["../out.jar", "/tmp/out.jar", "a/../../out.jar"])
def test_an_archive_that_would_write_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    source = archive_of(tmp_path / "a.tgz", tarfile.TarInfo(name), b"x")
    with pytest.raises(UnsafeArchive, match="nothing was unpacked"):
        unpack(source, tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_an_archive_with_a_link_is_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("lib/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with pytest.raises(UnsafeArchive, match="lib/link"):
        unpack(archive_of(tmp_path / "a.tgz", link), tmp_path / "into")


def test_files_are_unpacked_with_plain_permissions(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("plugin/one.jar")
    entry.mode = 0o4777
    target = tmp_path / "into"
    unpack(archive_of(tmp_path / "a.tgz", entry, b"jar"), target)
    assert (target / "plugin" / "one.jar").read_bytes() == b"jar"
    assert (target / "plugin" / "one.jar").stat().st_mode & 0o7777 == 0o755
    shutil.rmtree(target)
