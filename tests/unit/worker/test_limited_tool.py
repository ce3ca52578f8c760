"""`spec.timeout_s` ends calls of tools that have no limit of their own."""

from __future__ import annotations

import asyncio

import pytest

from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.limited import LimitedTool
from tests.support.worker.sinks import call as a_call


class _Slow:
    async def run(self, config: Config, call: Call) -> Outcome:
        await asyncio.sleep(float(str(config["seconds"])))
        return Outcome(status="success", data="done")

    async def close(self) -> None:
        """Close nothing."""


class _TimesOut(_Slow):
    async def run(self, config: Config, call: Call) -> Outcome:
        raise TimeoutError("of its own")


async def test_a_call_that_takes_too_long_fails_with_its_limit() -> None:
    outcome = await LimitedTool("nats", _Slow()).run({"seconds": 5}, a_call(timeout_s=0.05))
    assert outcome.error == {
        "kind": "nats.timeout",
        "message": "did not end within 0.05 s (`spec.timeout_s`)",
    }


@pytest.mark.parametrize("limit", [5.0, None])
async def test_a_call_within_its_limit_is_not_touched(limit: float | None) -> None:
    outcome = await LimitedTool("nats", _Slow()).run({"seconds": 0}, a_call(timeout_s=limit))
    assert (outcome.status, outcome.data) == ("success", "done")


async def test_a_timeout_of_the_tool_itself_is_not_reported_as_the_limit() -> None:
    with pytest.raises(TimeoutError, match="of its own"):
        await LimitedTool("nats", _TimesOut()).run({}, a_call(timeout_s=5))
