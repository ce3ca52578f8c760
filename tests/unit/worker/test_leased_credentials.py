"""Credentials of an attempt: asked for once, kept for the lease, dropped at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from streams.clock import SettableClock
from streams.errors import Refused, Unavailable
from streams.worker.attempt.secrets import (
    AttemptSecrets,
    LeasedCredentials,
    concealed,
    concealed_value,
    holding,
    name_credentials,
)
from streams.worker.errors import UnknownCredential
from streams.worker.tools.credentials import ConfiguredCredentials
from tests.support.waiting import until
from tests.support.worker.tool_calls import ITEM


class Server:
    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.word = "secret"

    async def resolve(self, held: AttemptSecrets, name: str) -> Mapping[str, str]:
        self.asked.append((held.item.entity_id, name))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return {"token": f"{self.word}-of-{name}"}


class World:
    def __init__(self) -> None:
        self.server, self.clock = Server(), SettableClock()
        own = ConfiguredCredentials({"local": {"token": "local-secret"}}, {})
        self.credentials = LeasedCredentials(own, self.server, self.clock)

    async def find(self, name: str) -> Mapping[str, str]:
        return await self.credentials.find("acme", "care", name)

    def attempt(self, entity_id: int = 2, *, step: str = "load", lease_s: float = 60.0):
        until = self.clock.monotonic() + lease_s
        return holding(replace(ITEM, entity_id=entity_id, step=step), "w/1", lambda: until)


async def test_rows_and_frames_of_a_step_ask_once():
    here = World()
    for frame in (1, 2, 3):
        with here.attempt(frame):
            for _ in range(5):
                assert await here.find("pg") == {"token": "secret-of-pg"}
    assert here.server.asked == [(1, "pg")]


async def test_rows_side_by_side_wait_for_one_answer():
    here = World()
    here.server.gate.clear()
    with here.attempt():
        asking = [asyncio.ensure_future(here.find("pg")) for _ in range(8)]
        await asyncio.sleep(0)
        here.server.gate.set()
        assert len(await asyncio.gather(*asking)) == 8
    assert len(here.server.asked) == 1


async def test_another_step_asks_for_itself():
    here = World()
    with here.attempt(1):
        await here.find("pg")
    with here.attempt(2, step="other"):
        await here.find("pg")
    assert len(here.server.asked) == 2


async def test_what_was_given_is_dropped_when_its_lease_ends():
    here = World()
    with here.attempt(lease_s=0.001):
        await here.find("pg")
        await until(lambda: not here.credentials._cached, within_s=30)
        await here.find("pg")
    assert len(here.server.asked) == 2


async def test_an_answer_that_comes_after_the_lease_is_not_kept():
    here = World()
    with here.attempt(lease_s=0.0):
        await here.find("pg")
        assert not here.credentials._cached


async def test_the_deployments_own_are_found_without_asking():
    here = World()
    with here.attempt():
        assert await here.find("local") == {"token": "local-secret"}
    assert not here.server.asked


async def test_a_playbooks_alias_is_the_name_that_is_asked_for():
    here = World()
    with here.attempt():
        name_credentials({"pg": "pg_main", "mine": "local"})
        await here.find("pg")
        assert await here.find("mine") == {"token": "local-secret"}
    assert here.server.asked == [(2, "pg_main")]


async def test_outside_an_attempt_nothing_is_asked():
    here = World()
    with pytest.raises(UnknownCredential):
        await here.find("pg")
    assert not here.server.asked


async def test_a_refusal_is_asked_for_once_an_attempt():
    here = World()
    here.server.error = Refused("not named")
    with here.attempt(1):
        for _ in range(3):
            with pytest.raises(Refused, match="not named"):
                await here.find("pg")
    here.server.error = None
    with here.attempt(2):
        assert await here.find("pg")
    assert here.server.asked == [(1, "pg"), (2, "pg")]


async def test_another_attempts_refusal_is_not_ours():
    here = World()
    here.server.gate.clear()
    here.server.error = Refused("it is not yours")
    with here.attempt(1):
        first = asyncio.ensure_future(here.find("pg"))
        await asyncio.sleep(0)
    with here.attempt(2):
        second = asyncio.ensure_future(here.find("pg"))
        await asyncio.sleep(0)
    here.server.gate.set()
    with pytest.raises(Refused):
        await first
    with pytest.raises(Refused):
        await second
    assert here.server.asked == [(1, "pg"), (2, "pg")]


async def test_a_server_that_is_down_is_asked_again():
    here = World()
    here.server.error = Unavailable("down")
    with here.attempt():
        with pytest.raises(Unavailable):
            await here.find("pg")
        here.server.error = None
        assert await here.find("pg")


async def test_what_an_attempt_used_is_concealed_while_it_lasts():
    here = World()
    with here.attempt():
        await here.find("pg")
        await here.find("local")
        assert concealed("secret-of-pg and local-secret") == "*** and ***"
        assert concealed_value({"a": "local-secret"}) == {"a": "***"}
    assert concealed("secret-of-pg") == "secret-of-pg"


async def test_a_secret_that_changed_during_an_attempt_is_concealed_too():
    here = World()
    with here.attempt(lease_s=0.0):
        await here.find("pg")
        here.server.word = "another-secret"
        assert await here.find("pg") == {"token": "another-secret-of-pg"}
        assert concealed("another-secret-of-pg after secret-of-pg") == "*** after ***"
