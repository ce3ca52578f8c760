"""Secrets of an attempt, cached until its lease ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from streams.clock import Clock
from streams.errors import Refused, StreamsError
from streams.kafka.work.item import WorkItem
from streams.redact import InUse, in_use
from streams.worker.errors import UnknownCredential
from streams.worker.port import Credentials

_Key = tuple[int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSecrets:
    """One attempt, while its lease lasts.

    `aliases` are the playbook's own names for credentials; `until` returns when the lease
    expires, on the monotonic clock.
    """

    item: WorkItem
    worker: str
    until: Callable[[], float]
    secrets: InUse
    aliases: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Refused] = field(default_factory=dict)
    """Names that the server refused; cached so that not every row asks."""


_current: ContextVar[AttemptSecrets | None] = ContextVar("holding", default=None)


@contextmanager
def holding(item: WorkItem, worker: str, until: Callable[[], float]) -> Iterator[AttemptSecrets]:
    """Set the current attempt, also for asyncio tasks started within."""
    with in_use() as secrets:
        made = AttemptSecrets(item=item, worker=worker, until=until, secrets=secrets)
        token = _current.set(made)
        try:
            yield made
        finally:
            _current.reset(token)


def name_credentials(aliases: Mapping[str, str]) -> None:
    """Set the playbook's own names for credentials in the current attempt."""
    if (now := _current.get()) is not None:
        now.aliases.update(aliases)


def conceal(name: str, fields: Mapping[str, object]) -> None:
    """Conceal the texts of these fields in the current attempt's output."""
    if (now := _current.get()) is not None:
        now.secrets.add(name, {key: one for key, one in fields.items() if isinstance(one, str)})


def concealed(text: str) -> str:
    """Return a message without the attempt's secrets.

    Shorten a message only afterwards: half a secret would not be found.
    """
    now = _current.get()
    return text if now is None else now.secrets.text(text)


def concealed_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error without the attempt's secrets."""
    now = _current.get()
    return dict(error) if now is None else now.secrets.error(error)


def concealed_value(value: Any) -> Any:
    """Return a JSON value without the attempt's secrets that are recognizable in it."""
    now = _current.get()
    return value if now is None else now.secrets.value(value)


class SecretServer(Protocol):
    """Opens a stored credential for an attempt that holds its lease."""

    async def resolve(self, held: AttemptSecrets, name: str) -> Mapping[str, str]:
        """Return the fields.

        Raises:
            UnknownCredential: it does not exist.
            Refused: the attempt may not use it, or it cannot be decrypted.
            Unavailable: the server cannot be reached; retrying is safe.
        """
        ...


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    asked_by: AttemptSecrets
    answer: asyncio.Future[Mapping[str, str]]


class LeasedCredentials:
    """Looks up a credential in the deployment's own, else requests it from the server.

    An answer is cached for the step of the execution, so that later rows and frames need no
    request, and dropped when the lease it was requested under would have expired.
    """

    def __init__(self, own: Credentials, server: SecretServer, clock: Clock) -> None:
        self._own, self._server, self._clock = own, server, clock
        self._cached: dict[_Key, _CachedAnswer] = {}

    async def find(self, tenant_id: str, organization_id: str, name: str) -> Mapping[str, str]:
        """Return the credential's fields, by the playbook's alias or by its own name.

        Raises:
            UnknownCredential: it does not exist.
            Refused: the attempt may not use it, or it cannot be decrypted.
            Unavailable: the server cannot be reached.
        """
        now = _current.get()
        real = name if now is None else now.aliases.get(name, name)
        if now is not None and (fields := self._ready(now, real)) is not None:
            now.secrets.add(real, fields)
            return fields
        try:
            fields = await self._own.find(tenant_id, organization_id, real)
        except UnknownCredential:
            if now is None:
                raise
            fields = await self._given(now, real)
        if now is not None:
            now.secrets.add(real, fields)
        return fields

    def _ready(self, now: AttemptSecrets, name: str) -> Mapping[str, str] | None:
        """Return the cached fields; the deployment's own credentials are never cached."""
        cached = self._cached.get((now.item.execution_id, now.item.step, name))
        if cached is None or not cached.answer.done() or cached.answer.exception() is not None:
            return None
        return cached.answer.result()

    async def _given(self, now: AttemptSecrets, name: str) -> Mapping[str, str]:
        """Return the cached fields, or request them; concurrent callers share one request."""
        if (refused := now.refused.get(name)) is not None:
            raise refused
        key = (now.item.execution_id, now.item.step, name)
        while (cached := self._cached.get(key)) is not None:
            try:
                return await asyncio.shield(cached.answer)
            except StreamsError:
                if cached.asked_by is now:
                    raise
                # Another attempt's refusal is not ours.
        asking = asyncio.ensure_future(self._server.resolve(now, name))
        cached = self._cached[key] = _CachedAnswer(now, asking)
        asking.add_done_callback(lambda _: self._settle(key, cached))
        return await asyncio.shield(asking)

    def _settle(self, key: _Key, cached: _CachedAnswer) -> None:
        """Cache an answer until its lease expires, a refusal until the attempt ends."""
        now, done = cached.asked_by, cached.answer
        error = None if done.cancelled() else done.exception()
        if isinstance(error, Refused):
            now.refused[key[2]] = error
        remaining_s = now.until() - self._clock.monotonic()
        if done.cancelled() or error is not None or remaining_s <= 0:
            self._drop(key, cached)
        else:
            asyncio.get_running_loop().call_later(remaining_s, self._drop, key, cached)

    def _drop(self, key: _Key, cached: _CachedAnswer) -> None:
        if self._cached.get(key) is cached:
            del self._cached[key]
