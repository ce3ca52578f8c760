"""What we show people to type works."""

import pytest

from examples.append import append_twice
from streams.settings import Settings

pytestmark = pytest.mark.stack


async def test_the_example_appends_once_though_it_says_it_twice(settings: Settings) -> None:
    assert await append_twice(settings) == ["1 playbook.initialized"]
