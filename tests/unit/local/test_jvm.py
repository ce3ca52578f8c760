"""What the stack's Java programs are given survives being written to a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from streams.cli import cli
from streams.data_folder import Layout, UnusableFolder
from streams.local.jvm import properties


def test_a_properties_file_says_every_letter_in_ascii():
    written = properties({"log.dirs": Path("/home/jörg/✓😀/a\\b"), "node.id": 1})
    assert written == (rb"log.dirs=/home/j\u00f6rg/\u2713\ud83d\ude00/a\\b" + b"\nnode.id=1\n")


@pytest.mark.parametrize("letter", [",", ";", "\n"])
def test_a_folder_whose_path_a_server_would_cut_is_refused(letter: str, tmp_path: Path):
    folder = tmp_path / f"a{letter}b"
    with pytest.raises(UnusableFolder, match="--data DIR"):
        Layout(folder).create()
    assert not folder.exists()


@pytest.mark.parametrize("how", [["--detach"], []])
def test_up_says_that_a_folder_cannot_be_used(how: list[str], tmp_path: Path):
    folder = str(tmp_path / "a,b")
    run = CliRunner().invoke(cli, ["up", "--roles", "none", "--data", folder, *how])
    assert isinstance(run.exception, UnusableFolder)
