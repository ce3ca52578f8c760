"""Which class archive a Java server uses, and when one is cached."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.local.class_archive import ClassArchive, class_archive
from streams.local.java import Java


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """A launcher that accepts every archive whose file says `good`."""
    program = tmp_path / "java"
    program.write_text(
        '#!/bin/sh\nfor one in "$@"; do case "$one" in -XX:SharedArchiveFile=*) '
        'exec grep -q good "${one#*=}";; esac; done\nexit 1\n'
    )
    program.chmod(0o755)
    return Java(program, 17)


@pytest.fixture
def archive(java: Java, tmp_path: Path) -> ClassArchive:
    return class_archive(java, tmp_path / "jars" / "lib", "kafka.Kafka", tmp_path / "fresh.jsa")


def test_the_first_run_writes_the_archive_and_the_next_ones_use_it(archive: ClassArchive) -> None:
    assert f"-XX:ArchiveClassesAtExit={archive.fresh}" in archive.options
    archive.fresh.write_text("good")
    archive.adopt()
    assert f"-XX:SharedArchiveFile={archive.cached}" in archive.options
    assert archive.cached.read_text() == "good"
    assert not archive.fresh.exists()


def test_a_partial_archive_is_deleted(archive: ClassArchive) -> None:
    archive.fresh.write_text("part")
    archive.adopt()
    assert not archive.fresh.exists()
    assert not archive.cached.exists()


def test_a_server_that_wrote_none_changes_nothing(archive: ClassArchive) -> None:
    archive.adopt()
    assert not archive.cached.parent.exists()


def test_another_java_has_another_archive(java: Java, tmp_path: Path) -> None:
    lib, fresh = tmp_path / "jars" / "lib", tmp_path / "fresh.jsa"
    other = tmp_path / "other"
    other.write_text("")
    one = class_archive(java, lib, "kafka.Kafka", fresh)
    assert one.cached != class_archive(Java(other, 17), lib, "kafka.Kafka", fresh).cached
    assert one.cached != class_archive(java, lib, "kafka.Connect", fresh).cached
