"""Cache of storage clients, one for each login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Generic, TypeVar

UNUSED_S = 600.0
Client = TypeVar("Client")


@dataclass(slots=True)
class _Open(Generic[Client]):
    client: Client
    users: int = 0
    used_at: float = 0.0


class Clients(Generic[Client]):
    """Opens a client when a sink first uses its login, and reuses it.

    An idle client is closed by the next write to its storage: its password may have changed, or
    the tenant may be gone.
    """

    def __init__(self, close: Callable[[Client], Awaitable[None]]) -> None:
        self._close, self._open = close, dict[bytes, _Open[Client]]()

    @asynccontextmanager
    async def use(
        self, login: tuple[object, ...], make: Callable[[], Client]
    ) -> AsyncIterator[Client]:
        """Yield the client of a login, opened by `make` if there is none."""
        await self._close_unused()
        key = sha256(repr(login).encode()).digest()  # not the login: it is a secret
        if (found := self._open.get(key)) is None:
            found = self._open[key] = _Open(make())
        found.users += 1
        try:
            yield found.client
        finally:
            found.users -= 1
            found.used_at = _now()

    async def close(self) -> None:
        """Close all clients."""
        while self._open:
            _, last = self._open.popitem()
            await self._close(last.client)

    async def _close_unused(self) -> None:
        now = _now()
        unused = [
            key for key, one in self._open.items() if not one.users and now - one.used_at > UNUSED_S
        ]
        for client in [self._open.pop(key).client for key in unused]:
            await self._close(client)


def _now() -> float:
    return asyncio.get_running_loop().time()
