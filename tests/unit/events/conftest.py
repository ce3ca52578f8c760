"""The envelope's tests run with the reference and with the native sealer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streams.events.native import native
from tests.support.events.examples import NATIVELY


@pytest.fixture(scope="module", params=["python", "native"])
def either_sealer(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let `tests.support.events.examples.sealed` seal the one way, then the other."""
    if request.param == "native" and native() is None:
        pytest.skip("the native sealer is not built here (crates/sealer)")
    token = NATIVELY.set(request.param == "native")
    yield
    NATIVELY.reset(token)
