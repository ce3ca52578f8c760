"""Data folders are found, and a missing one says where it was looked for."""

from __future__ import annotations

import pytest

from streams.resources import MissingAssets, folder


@pytest.mark.parametrize("name", ["avro_schemas", "topics", "connectors"])
def test_every_data_folder_is_found(name: str) -> None:
    assert any(folder(name).iterdir())


def test_a_missing_folder_is_named_with_what_to_do() -> None:
    with pytest.raises(MissingAssets, match=r"no_such_folder/: no such folder in .*reinstall"):
        folder("no_such_folder")
