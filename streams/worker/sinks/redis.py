"""Keys and values in Redis, or any server of its protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import orjson
from redis import asyncio as redis
from redis.asyncio.client import Pipeline
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,
    RedisError,
    TimeoutError,
)

from streams.events.model import Json
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.clients import Clients
from streams.worker.sinks.format import rows_in
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused

CHUNK = 1000
CONNECTIONS = 16
Pair = tuple[str, bytes, int | None]


class RedisDriver:
    """Sets `key` to `value`, with `ttl` in seconds if given; `data` may be a list of them.

    Text is stored as is, anything else as JSON. Mode update sets existing keys only; append
    adds the value to the list at the key.
    """

    def __init__(self, around: SinkEnvironment) -> None:
        self._clients = Clients[redis.Redis](redis.Redis.aclose)

    async def write(self, job: SinkJob) -> SinkReference:
        """Write all pairs, each chunk of them in one transaction."""
        pairs = [_pair(row, job) for row in rows_in(job.data, "kv")]
        url = job.setting("url", "dsn") or _url(job.secret)
        try:
            async with self._clients.use((url,), lambda: _opened(url)) as client:
                await _send_all(client, job, pairs)
        except (AuthenticationError, AuthorizationError) as error:
            raise SinkRefused("auth", str(error)) from error
        except (ConnectionError, TimeoutError, OSError) as error:
            raise TargetUnavailable(f"the kv store: {error}; retrying") from error
        except RedisError as error:
            raise SinkRefused("refused", str(error)) from error
        keys = [key for key, _, _ in pairs]
        span = f"keys:{len(keys)}" if len(keys) != 1 else ""
        return {"store": "kv", "key": keys[0] if keys else "", "range": span}

    async def close(self) -> None:
        """Close the connections."""
        await self._clients.close()


async def _send_all(client: redis.Redis, job: SinkJob, pairs: Sequence[Pair]) -> None:
    """Send the chunks with the job's concurrency; those that share a key stay in order.

    When one fails the rest are cancelled and awaited, so that none writes after the next
    attempt.
    """
    at_once, size = asyncio.Semaphore(job.concurrency), job.chunk_size or CHUNK

    async def send(chunk: Sequence[Pair], before: set[asyncio.Task[None]]) -> None:
        await asyncio.gather(*before)
        async with at_once, client.pipeline(transaction=True) as batch:
            for key, value, ttl in chunk:
                _queue(batch, job.mode, key, value, ttl)
            await batch.execute()

    sent: list[asyncio.Task[None]] = []
    last: dict[str, asyncio.Task[None]] = {}
    for begin in range(0, len(pairs), size):
        chunk = pairs[begin : begin + size]
        before = {last[key] for key, _, _ in chunk if key in last}
        sent.append(asyncio.create_task(send(chunk, before)))
        last |= {key: sent[-1] for key, _, _ in chunk}
    try:
        await asyncio.gather(*sent)
    finally:
        for one in sent:
            one.cancel()
        await asyncio.gather(*sent, return_exceptions=True)


def _opened(url: str) -> redis.Redis:
    try:
        # A blocking pool: there may be more writes than connections.
        pool = redis.BlockingConnectionPool.from_url(
            url,
            socket_connect_timeout=5,
            socket_timeout=30,
            max_connections=CONNECTIONS,
            timeout=30,
        )
    except ValueError:
        # The parser's message would show a part of the secret.
        how = "write redis://user:password@host:6379/0, each part percent-encoded"
        raise BadConfig(f"the address of the kv store cannot be read; {how}") from None
    return redis.Redis.from_pool(pool)


def _url(secret: Mapping[str, str]) -> str:
    if "host" not in secret:
        raise BadConfig("a kv sink needs `auth` whose credential has `url`, or `host` …")
    named = secret.get("username") or secret.get("user") or ""
    user, password = (quote(part, safe="") for part in (named, secret.get("password", "")))
    login = f"{user}:{password}@" if password else ""
    scheme = "rediss" if secret.get("tls", "").lower() in ("1", "true", "yes") else "redis"
    return (
        f"{scheme}://{login}{secret['host']}:{secret.get('port', '6379')}/{secret.get('db', '0')}"
    )


def _pair(row: Mapping[str, Json], job: SinkJob) -> Pair:
    if not {"key", "value"} <= row.keys():
        raise BadConfig(f"a kv sink takes `key` and `value`, not {', '.join(row)}")
    if unknown := row.keys() - {"key", "value", "ttl"}:
        raise BadConfig(f"a kv sink takes `key`, `value` and `ttl`, not {min(unknown)!r}")
    namespace = str(job.spec.get("namespace") or "")
    key, value = row["key"], row["value"]
    if isinstance(key, bool) or not isinstance(key, (str, int, float)):
        raise BadConfig(f"`key` must be a text or a number, not {key!r:.80}")
    ttl = row.get("ttl", job.spec.get("ttl"))
    if ttl is not None and (type(ttl) is not int or ttl <= 0):
        raise BadConfig(f"`ttl` must be a whole number of seconds, not {ttl!r}")
    content = value.encode() if isinstance(value, str) else orjson.dumps(value, default=str)
    return f"{namespace}:{key}" if namespace else str(key), content, ttl


def _queue(batch: Pipeline, mode: str, key: str, value: bytes, ttl: int | None) -> None:
    if mode == "append":
        batch.rpush(key, value)
        if ttl is not None:
            batch.expire(key, ttl)
    else:
        batch.set(key, value, ex=ttl, xx=mode == "update")
