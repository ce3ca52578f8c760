"""Clients of sinks: shared by writes with one login, and forgotten when nobody uses them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from streams.worker.errors import BadConfig
from streams.worker.sinks import clients
from streams.worker.sinks.clients import Clients
from streams.worker.sinks.redis import _opened, _url


class Shop:
    def __init__(self) -> None:
        self.closed: list[str] = []
        self.made: list[str] = []
        self.clients = Clients[str](self._close)

    def use(self, login: str) -> Any:
        def make() -> str:
            self.made.append(login)
            return f"client of {login}"

        return self.clients.use((login,), make)

    async def _close(self, client: str) -> None:
        self.closed.append(client)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a client be unused as soon as nobody has it."""
    monkeypatch.setattr(clients, "UNUSED_S", -1.0)


async def test_writes_with_one_login_share_a_client() -> None:
    here = Shop()
    for _ in range(3):
        async with here.use("a") as client:
            assert client == "client of a"
    async with here.use("b"):
        pass
    assert (here.made, here.closed) == (["a", "b"], [])
    await here.clients.close()
    assert sorted(here.closed) == ["client of a", "client of b"]


async def test_one_that_nobody_uses_any_more_is_closed(soon: None) -> None:
    here = Shop()
    async with here.use("a"):
        pass
    async with here.use("b"):
        assert here.closed == ["client of a"]
        async with here.use("b"):  # in use, and so not closed
            assert here.made == ["a", "b"]
    assert here.closed == ["client of a"]


async def test_writes_side_by_side_open_one_client(soon: None) -> None:
    here = Shop()
    async with AsyncExitStack() as all_of_them:
        entering = (all_of_them.enter_async_context(here.use("a")) for _ in range(5))
        await asyncio.gather(*entering)
        assert here.made == ["a"]


def test_a_password_of_redis_may_have_any_letter() -> None:
    client = _opened(_url({"host": "h", "password": "a/b@c:d%e ä"}))
    options: Any = client.connection_pool.connection_kwargs
    assert (options["host"], options["password"]) == ("h", "a/b@c:d%e ä")


def test_an_address_that_cannot_be_read_is_not_quoted() -> None:
    with pytest.raises(BadConfig) as caught:
        _opened("redis://:c4na/ry@h:6379/0")
    assert "c4na" not in str(caught.value)
