"""Every sink driver that is named by its module is there."""

from __future__ import annotations

import pytest

from streams.playbook.sinks.storages import STORAGES
from streams.worker.sinks import tool


@pytest.mark.parametrize("name", tool._OURS)
def test_a_named_driver_can_be_imported(name: str) -> None:
    storage, _, driver = name.partition(".")

    assert storage in STORAGES
    assert callable(tool._factory(storage, driver, name))
