"""Versions of a projection in another store cannot be built: the message says what to do."""

from __future__ import annotations

import pytest

from streams.roles.projection_shadow import StoredElsewhere, plan_shadow, run_build
from streams.settings import load

KEYED = {
    "STREAMS__PROJECTION_STORES__KEYED__BACKEND": "key-value",
    "STREAMS__PROJECTION_STORES__KEYED__CONNECTION__DSN": "rocksdb:/data/keyed",
    "STREAMS__MATERIALIZATIONS__PATIENTS__STORE": "keyed",
}


@pytest.mark.parametrize("action", [plan_shadow, run_build])
async def test_a_version_in_another_store_is_refused(action: type) -> None:
    settings = load(env=KEYED).settings
    with pytest.raises(StoredElsewhere, match=r"'keyed'.*`materializations.patients.store: def"):
        await action(settings, "patients", 2)
