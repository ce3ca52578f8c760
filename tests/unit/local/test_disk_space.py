"""A full disk is reported in one sentence, whether it was full before or becomes so."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streams.cli import main
from streams.data_folder import layout_of
from streams.local.disk_space import within
from streams.local.errors import DiskFull
from streams.local.fetch import Mvn
from streams.local.jars import provide_jars
from streams.local.pom import POM, read_coordinates
from streams.local.secrets import load_secrets
from streams.local.stack import Stack

FULL = Path("/dev/full")
"""The kernel's own full disk: whatever is written to it fails for lack of room."""
WHAT_TO_DO = r"MiB free, \d+ MiB are needed: free some space or choose another disk with --data"


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every disk has 5 MiB left."""
    usage = SimpleNamespace(total=2**30, used=2**30 - 5 * 2**20, free=5 * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


async def test_a_stack_does_not_begin_where_there_is_no_room(
    tmp_path: Path, small_disk: None
) -> None:
    with pytest.raises(DiskFull, match=rf"{tmp_path}.* has 5 {WHAT_TO_DO}"):
        await Stack(tmp_path / "data").start()
    again = Stack(tmp_path / "data")  # the folder is free again: this one gets as far
    with pytest.raises(DiskFull):
        await again.start()


def test_up_says_it_without_a_traceback(
    tmp_path: Path,
    small_disk: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["streams", "up", "--data", str(tmp_path / "data")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == DiskFull.exit_code
    said = capsys.readouterr().err
    assert f"error: {tmp_path / 'data'} has 5 MiB free" in said
    assert "Traceback" not in said


async def test_a_disk_that_becomes_full_while_the_stack_starts_is_told_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = layout_of(tmp_path / "data")
    layout.create()
    # Files are replaced by a new one beside them; this one lies on the full disk.
    half_written = layout.secrets.with_name(f".{layout.secrets.name}.{os.getpid()}")
    half_written.symlink_to(FULL)

    def assemble(*_: Any) -> Any:
        load_secrets(layout)

    monkeypatch.setattr("streams.local.stack.assemble", assemble)
    with pytest.raises(DiskFull, match=WHAT_TO_DO):
        await Stack(layout.data).start()
    assert not layout.secrets.exists()
    half_written.unlink()
    load_secrets(layout)  # with room, the folder is as good as new
    assert layout.secrets.exists()


class Filling:
    """A fetcher whose second file has no room."""

    name = "test"

    def fetch(self, profile: str, coordinates: Any, target: Path) -> None:
        (target / coordinates[0].file_name).write_bytes(b"jar")
        FULL.write_bytes(b"jar")


def test_jars_that_have_no_room_leave_nothing_that_looks_complete(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=r"STREAMS_CACHE"):
        provide_jars("core", cache=tmp_path, say=lambda _: None, fetcher=Filling())
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_jars_are_not_fetched_where_there_is_no_room(tmp_path: Path, small_disk: None) -> None:
    with pytest.raises(DiskFull, match=rf"{tmp_path} has 5 MiB free"):
        provide_jars("core", cache=tmp_path, say=lambda _: None, fetcher=Filling())


def test_maven_on_a_full_disk_is_not_taken_for_a_missing_network(tmp_path: Path) -> None:
    program = tmp_path / "mvn"
    program.write_text("#!/bin/sh\necho '[ERROR] write failed: No space left on device'\nexit 1\n")
    program.chmod(0o700)
    with pytest.raises(OSError, match="No space left") as caught:
        Mvn(program).fetch("core", read_coordinates(POM.read_text(), "core"), tmp_path)
    assert caught.value.errno == errno.ENOSPC


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), within(tmp_path, 1):
        (tmp_path / "nothing").read_bytes()
